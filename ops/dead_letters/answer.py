"""What the commands answer, as JSON has it. Times are ISO 8601 in UTC."""

from typing import Any, Literal

from msgspec import Struct

from mailroom.clock import iso
from mailroom.dead_letters.cause import Cause
from ops.dead_letters.queues import ExplainedDeadLetter

State = Literal["done", "nothing"]
"""How a redrive ended. `nothing` was moved: nothing lay there, or it was a dry run. `running`: it goes on
without this process."""


class DeadLetterCounts(Struct, frozen=True):
    """`letters` lie in the dead-letter queue of `queue`. Somebody has received `hidden` of them. Both numbers
    are approximate. `oldest` and `causes` describe the `looked_at` letters that were read;
    `complete`: no others can be seen."""

    queue: str
    letters: int
    hidden: int
    looked_at: int = 0
    oldest: str | None = None
    causes: dict[str, int] = {}
    complete: bool = True


class DeadLettersListed(Struct, frozen=True):
    """Answer of `dead-letters list`."""

    stage: str
    letters: int
    queues: list[DeadLetterCounts]


class ShownDeadLetter(Struct, frozen=True):
    """One dead letter. `message_id` is SQS's; `id` and `event_type` are its message's, where it is about one.

    `status` and `last_error` are the ledger's. `first_seen`: when the function dead-letters first reported
    it; `body`: only where --body asks for it.
    """

    queue: str
    message_id: str
    kind: str
    cause: Cause
    receives: int
    sent_at: str
    first_seen: str | None = None
    id: str | None = None
    event_type: str | None = None
    status: str | None = None
    last_error: dict[str, Any] | None = None
    body: str | None = None


class DeadLettersShown(Struct, frozen=True):
    """Answer of `dead-letters show`. `looked_at` dead letters were read to find these. The queues in
    `incomplete` could not be read to their end."""

    stage: str
    looked_at: int
    letters: list[ShownDeadLetter]
    incomplete: list[str] = []


class Redriven(Struct, frozen=True):
    """Answer of `dead-letters redrive`. `found` dead letters lay there before, `moved` went to `destination`,
    `left` should have gone and did not. SQS's counts are approximate. `reason` names chosen dead letters
    that would have overtaken others of their line."""

    stage: str
    queue: str
    destination: str
    dry_run: bool
    state: State
    found: int
    moved: int
    left: int
    reason: str | None = None


def shown(seen: ExplainedDeadLetter, queue: str, *, body: bool) -> ShownDeadLetter:
    """A dead letter in the form of the answer."""
    key, item = seen.subject.key, seen.item
    error = item.get("trouble") or item.get("error")
    return ShownDeadLetter(
        queue,
        seen.dead_letter.message_id,
        seen.subject.kind,
        seen.cause,
        seen.dead_letter.receives,
        iso(seen.dead_letter.sent_at / 1000),
        None if seen.first_seen is None else iso(seen.first_seen / 1000),
        None if key is None else key.id,
        None if key is None else key.event_type,
        item.get("status"),
        error if isinstance(error, dict) else None,
        seen.dead_letter.body if body else None,
    )
