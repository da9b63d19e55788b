"""The answer of `resend --json`."""

from typing import Literal

from msgspec import Struct, structs


class ResentMessage(Struct, frozen=True):
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

    def refused(self, why: str) -> "ResentMessage":
        """The same, left as it was."""
        return ResentMessage(self.id, self.event_type, self.status, "refused", why)

    def unqueued(self, why: str) -> "ResentMessage":
        """The same, cut off half-way."""
        return structs.replace(self, result="unqueued", why=why)


class Resent(Struct, frozen=True):
    """What became of the messages, one by one and counted. Of a dry run the ones that would be sent again are
    `ready`."""

    stage: str
    dry_run: bool
    counts: dict[str, int]
    messages: list[ResentMessage]
