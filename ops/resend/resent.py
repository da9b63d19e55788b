"""What became of a message that was to be sent again."""

from typing import Literal

from msgspec import Struct, structs


class Resent(Struct, frozen=True):
    """What became of one message, or what would. `status` is the one before; `attempt` the number of the
    next. unqueued: it was reopened, or may have been, and is in no queue: `resend` again, or `reconcile`,
    queues it."""

    id: str
    event_type: str
    status: str
    result: Literal["ready", "resent", "refused", "unqueued"]
    why: str
    attempt: int | None = None
    may_arrive_twice: bool = False

    def refused(self, why: str) -> "Resent":
        """The same, left as it was."""
        return Resent(self.id, self.event_type, self.status, "refused", why)

    def unqueued(self, why: str) -> "Resent":
        """The same, cut off half-way."""
        return structs.replace(self, result="unqueued", why=why)
