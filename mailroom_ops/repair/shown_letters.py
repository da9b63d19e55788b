"""Dead letters with their causes, as the commands and the console show them."""

from collections import Counter
from itertools import islice
from typing import Any

from msgspec import Struct

from mailroom.clock import iso
from mailroom.dead_letters.cause import Cause, ExplainedDeadLetter
from mailroom_ops.messages import filters
from mailroom_ops.repair.dead_letter_queues import DeadQueue, DeadQueues
from mailroom_ops.shared.deployed_stage import depth


class DeadLetterCounts(Struct, frozen=True):
    """Counts for one queue. `letters` is the number of messages in its dead-letter queue; `hidden` of them
    are received by another reader at the moment. Both numbers are approximate. `looked_at` letters were read:
    `oldest` is the time of the oldest, and `causes` has their number by cause."""

    queue: str
    letters: int
    hidden: int
    looked_at: int = 0
    oldest: str | None = None
    causes: dict[str, int] = {}


class ShownDeadLetter(Struct, frozen=True):
    """Dead letter with its cause. A dead letter that is not about a message has neither `id` nor
    `event_type`."""

    queue: str
    message_id: str
    """Id in SQS."""
    kind: str
    cause: Cause
    receives: int
    sent_at: str
    id: str | None = None
    event_type: str | None = None
    status: str | None = None
    """Status in the ledger."""
    last_error: dict[str, Any] | None = None
    """Trouble or error in the ledger."""
    body: str | None = None
    """Body of the dead letter; None without `--body`."""


class DeadLettersShown(Struct, frozen=True):
    """Output of the command `messages dead-letters` for a dead letter or queue. `looked_at` is the number of
    dead letters that were read. The queues in `incomplete` could not be read to their end. `more` is whether
    --limit has left out dead letters."""

    stage: str
    looked_at: int
    letters: list[ShownDeadLetter]
    incomplete: list[str] = []
    more: bool = False


def count_letters(
    queues: DeadQueues, queue: DeadQueue, limit: int, period: filters.Period = filters.ALWAYS
) -> DeadLetterCounts:
    """Return the number of dead letters in a queue, and the causes of the first ones, up to a `limit`, that
    were queued in the period."""
    queue_depth = depth(queues.client, queue.url)
    # Letters in flight are hidden: another reader has received them, and not yet put them back.
    total, hidden = queue_depth.all, queue_depth.in_flight
    if not queue_depth.visible or not limit:
        return DeadLetterCounts(queue.queue, total, hidden)
    with queues.scan(queue) as dead_letters:
        letters = list(islice(dead_letters, limit))
    in_period = [letter for letter in letters if period.contains(letter.dead_letter.sent_at)]
    causes = Counter(letter.cause.code for letter in in_period)
    oldest = min((letter.dead_letter.sent_at for letter in in_period), default=None)
    since = None if oldest is None else iso(oldest / 1000)
    return DeadLetterCounts(queue.queue, total, hidden, len(letters), since, dict(causes.most_common()))


def find_letters(
    queues: DeadQueues,
    name: str | None,
    stage: str,
    which: str | None,
    limit: int,
    body: bool,
    period: filters.Period = filters.ALWAYS,
) -> DeadLettersShown:
    """Return up to `limit` dead letters of the queue `name`, or of all queues, that were queued in the
    period. If `which` is not None, return only dead letters with this SQS id or message id."""
    letters: list[ShownDeadLetter] = []
    incomplete: list[str] = []
    looked_at = 0
    for queue in queues.named(name):
        with queues.scan(queue) as dead_letters:
            for letter in dead_letters:
                key, dead_letter = letter.subject.key, letter.dead_letter
                match = which in (None, dead_letter.message_id, key and key.id)
                match = match and period.contains(dead_letter.sent_at)
                if match and len(letters) == limit:
                    return DeadLettersShown(stage, looked_at, letters, incomplete, more=True)
                looked_at += 1
                if match:
                    letters.append(_shown(letter, queue.queue, body=body))
            if not dead_letters.complete():
                incomplete.append(queue.queue)
    return DeadLettersShown(stage, looked_at, letters, incomplete)


def _shown(letter: ExplainedDeadLetter, queue: str, *, body: bool) -> ShownDeadLetter:
    key, item = letter.subject.key, letter.item
    error = item.get("trouble") or item.get("error")
    return ShownDeadLetter(
        queue,
        letter.dead_letter.message_id,
        letter.subject.kind,
        letter.cause,
        letter.dead_letter.receives,
        iso(letter.dead_letter.sent_at / 1000),
        None if key is None else key.id,
        None if key is None else key.event_type,
        item.get("status"),
        error if isinstance(error, dict) else None,
        letter.dead_letter.body if body else None,
    )
