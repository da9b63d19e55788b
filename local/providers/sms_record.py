"""An SMS at a simulated provider."""

from dataclasses import dataclass

from local.providers import sms_numbers

SENT_SECONDS = 0.1
ENDED_SECONDS = 0.3
"""After its acceptance: handed to the carrier, and ended."""


class Refused(Exception):
    """The provider does not take this message; `why` is the table's word for it."""

    def __init__(self, why: sms_numbers.Refusal) -> None:
        super().__init__(why)
        self.why = why


@dataclass(frozen=True)
class Order:
    """What was asked of a provider; "" is not given."""

    to: str
    sender: str = ""
    service: str = ""
    body: str = ""
    media_urls: tuple[str, ...] = ()
    callback: str = ""
    validity_seconds: int | None = None

    @property
    def content(self) -> tuple[str, str, tuple[str, ...]]:
        """The same for every submit of the same message."""
        return self.to, self.body, tuple(url.partition("?")[0] for url in self.media_urls)


@dataclass(frozen=True)
class Sms:
    """An accepted message; times are epoch seconds. `number` is what it is sent from."""

    sid: str
    order: Order
    course: sms_numbers.Course
    error: int | None
    created: float
    attempt: int
    number: str

    @property
    def statuses(self) -> tuple[str, ...]:
        """All that it passes through, in Twilio's words. With a Messaging Service it starts as accepted."""
        start = ("accepted", "queued") if self.order.service else ("queued",)
        match self.course:
            case "failed":
                return (*start, "failed")
            case "sent":
                return (*start, "sent")
        return (*start, "sent", self.course)

    def status(self, now: float) -> str:
        """Where it stands."""
        if now >= self.created + ENDED_SECONDS:
            return self.statuses[-1]
        sent = now >= self.created + SENT_SECONDS
        return "sent" if sent and "sent" in self.statuses else self.statuses[0]

    def sent_at(self, now: float) -> float | None:
        """When it was handed to the carrier; a queued message has no such time yet."""
        at = self.created + SENT_SECONDS
        return at if now >= at and "sent" in self.statuses else None
