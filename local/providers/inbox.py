"""What the providers' simulators accepted, in the order of acceptance."""

import threading
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from local.providers.http import Pages, Request, iso_milliseconds


@dataclass(frozen=True)
class Accepted:
    """One message that a provider took. `to` is one string on every channel: several addresses of one
    mail are joined by commas, as in its To header; `content` has them as a list."""

    channel: str
    to: str
    provider_id: str
    content: dict[str, Any]
    received_at: str = field(default_factory=lambda: iso_milliseconds(datetime.now(UTC)))


class InboxStore:
    """Kept in memory, newest last; safe for many threads."""

    def __init__(self) -> None:
        self._accepted: list[Accepted] = []
        self._lock = threading.Lock()

    def add(self, accepted: Accepted) -> None:
        with self._lock:
            self._accepted.append(accepted)

    def all(self) -> list[Accepted]:
        with self._lock:
            return list(self._accepted)

    def clear(self) -> None:
        with self._lock:
            self._accepted.clear()

    def pages(self) -> Pages:
        """GET /inbox (?after=COUNT leaves out the first so many), GET /inbox/count, DELETE /inbox."""
        return Pages(
            "/inbox",
            {
                "GET /inbox": self._after,
                "GET /inbox/count": lambda _: {"count": len(self.all())},
                "DELETE /inbox": lambda _: self.clear(),
            },
        )

    def _after(self, request: Request) -> list[dict[str, Any]]:
        after = request.query.get("after", "0")
        if not after.isdecimal():
            raise ValueError("after: give a count, such as 7.")
        return [asdict(each) for each in self.all()[int(after) :]]
