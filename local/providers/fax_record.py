"""A fax at a simulated provider."""

from dataclasses import dataclass, field
from typing import Any

from local.providers import fax_numbers

_ENDINGS = {"slow": "delivered", "lost": "delivered", "unreachable": "failed", "unallocated": "failed"}


class Refused(Exception):
    """The provider does not take this fax; `why` is the table's word for it."""

    def __init__(self, why: fax_numbers.Refusal) -> None:
        super().__init__(why)
        self.why = why


@dataclass(frozen=True)
class Order:
    """What was asked of a provider."""

    provider: str
    to: str
    sender: str
    media_url: str
    quality: str = ""
    reference: str = ""
    ttl_minutes: int | None = None
    store_media: bool = True
    account: str = ""


@dataclass
class Fax:
    """An accepted fax; times are epoch seconds. A stuck one ends and is dialled at infinity."""

    id: str
    order: Order
    course: fax_numbers.Course
    created: float
    ends: float
    attempt: int
    overlaps: list[str]
    media_ok: bool | None
    dialled: float = field(init=False)
    canceled: bool = False

    def __post_init__(self) -> None:
        self.dialled = self.created + 0.3 * (self.ends - self.created)

    def status(self, now: float) -> str:
        """In SignalWire's words."""
        if now < self.ends:
            return self._under_way(now)
        return "canceled" if self.canceled else _ENDINGS.get(self.course, self.course)

    def _under_way(self, now: float) -> str:
        if now >= self.dialled:
            return "sending"
        return "processing" if now >= self.created + 0.1 * (self.ends - self.created) else "queued"

    def as_json(self, now: float) -> dict[str, Any]:
        return {
            "id": self.id,
            "provider": self.order.provider,
            "to": self.order.to,
            "from": self.order.sender,
            "media_url": self.order.media_url,
            "quality": self.order.quality,
            "reference": self.order.reference,
            "ttl_minutes": self.order.ttl_minutes,
            "store_media": self.order.store_media,
            "course": self.course,
            "status": self.status(now),
            "created": self.created,
            "started": self.dialled if min(now, self.ends) >= self.dialled else None,
            "ended": self.ends if now >= self.ends else None,
            "attempt": self.attempt,
            "overlaps": self.overlaps,
            "media_ok": self.media_ok,
        }
