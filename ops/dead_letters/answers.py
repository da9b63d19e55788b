"""What the commands answer, as JSON has it. Times are ISO 8601 in UTC."""

from typing import Any, Literal

from msgspec import Struct

from mailroom.clock import iso
from mailroom.dead_letters.cause import Cause
from ops.dead_letters.look import Seen

State = Literal["done", "nothing", "cancelled", "failed", "running"]
"""How a redrive ended. `nothing` was moved: nothing lay there, or it was a dry run. `running`: it goes on
without us."""


class QueueOfLetters(Struct, frozen=True):
    """`letters` lie in the dead-letter queue of `queue`, `hidden` of them received by somebody; both are
    approximate. `oldest` and `causes` are of the `looked_at` that were looked at; `complete`: those are all
    that can be seen."""

    queue: str
    letters: int
    hidden: int
    looked_at: int = 0
    oldest: str | None = None
    causes: dict[str, int] = {}
    complete: bool = True


class Listed(Struct, frozen=True):
    """Answer of `dead-letters list`."""

    stage: str
    letters: int
    queues: list[QueueOfLetters]


class Shown(Struct, frozen=True):
    """One letter. `message_id` is SQS's; `id` and `event_type` are its message's, where it is about one.

    `status` and `last_error` are the ledger's. `first_seen`: when it was told of; `body`: where asked for.
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


class LettersShown(Struct, frozen=True):
    """Answer of `dead-letters show`. `looked_at` letters were looked through for them; of the queues in
    `incomplete` not all that lie there, unless as many as were wanted had been found before."""

    stage: str
    looked_at: int
    letters: list[Shown]
    incomplete: list[str] = []


class Redriven(Struct, frozen=True):
    """Answer of `dead-letters redrive`. `way`: SQS's own task, or one letter after another by this process.

    `found` letters lay there before, `moved` have gone to `destination`, `left` of those that were meant have
    not; all are approximate where SQS counts. `reason` says why a task failed.
    """

    stage: str
    queue: str
    destination: str
    dry_run: bool
    state: State
    way: Literal["move_task", "one_by_one"] | None
    found: int
    moved: int
    left: int
    reason: str | None = None


def shown(seen: Seen, queue: str, *, body: bool) -> Shown:
    """A letter in the form of the answer."""
    key, item = seen.subject.key, seen.item
    error = item.get("trouble") or item.get("error")
    return Shown(
        queue,
        seen.letter.message_id,
        seen.subject.kind,
        seen.cause,
        seen.letter.receives,
        iso(seen.letter.sent_at / 1000),
        None if seen.first_seen is None else iso(seen.first_seen / 1000),
        None if key is None else key.id,
        None if key is None else key.event_type,
        item.get("status"),
        error if isinstance(error, dict) else None,
        seen.letter.body if body else None,
    )
