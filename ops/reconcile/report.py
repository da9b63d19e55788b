"""What `reconcile` found and did, for programs and for people."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from ops.reconcile.judge import State
from ops.reconcile.look import Table
from ops.resend.deployed import Deployed

if TYPE_CHECKING:
    from types_boto3_sqs.literals import QueueAttributeNameType

_DEPTHS: "tuple[QueueAttributeNameType, ...]" = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)
_SENTENCES: dict[State, str] = {
    "missing": "are in the mailbox, and unknown to the ledger",
    "overdue": "were begun, and should have moved on long ago",
    "dead_letters": "lie in a dead-letter queue, and are left there: see mailroom dead-letters",
    "gone": "were begun, and their item is gone from the mailbox; they may have been sent, or still be "
    "queued: ask the provider first, for to put one there again under a new id may send it twice",
    "undated": "are unknown to the ledger, and may be older than it remembers, so they may have been sent: "
    "--undated puts them back all the same",
}


class Answer(Struct, frozen=True):
    """`looked_at`: items, by table. `found`: messages by state and channel, as they stood before; those that
    had moved on by themselves are left out. `queues`: messages in each channel's queues, roughly. `put_back`:
    by channel; `failed`: could not be put back. `look`: the file that keeps what was seen, "" where it is
    done with."""

    stage: str
    dry_run: bool
    older_than_seconds: int
    looked_at: dict[Table, int]
    found: dict[State, dict[str, int]]
    queues: dict[str, int]
    put_back: dict[str, int]
    failed: int
    look: str

    @property
    def stuck(self) -> int:
        """How many are to be put back."""
        stuck: tuple[State, ...] = ("missing", "overdue")
        return sum(sum(self.found.get(state, {}).values()) for state in stuck)

    @property
    def left(self) -> bool:
        """Whether something is not on its way that should be, or may not be."""
        kept: tuple[State, ...] = ("gone", "dead_letters", "undated")
        return bool(self.failed or any(map(self.found.get, kept)) or (self.dry_run and self.stuck))


def by_state(counts: Counter[tuple[State, str]]) -> dict[State, dict[str, int]]:
    """The counts that tell of trouble, by state and then by channel."""
    found: dict[State, dict[str, int]] = {}
    for (state, channel), count in sorted(counts.items()):
        if state != "moving":
            found.setdefault(state, {})[channel] = count
    return found


def depths(deployed: Deployed) -> dict[str, int]:
    """How many messages each channel's queues hold, roughly."""
    return {
        channel: sum(_depth(deployed, url) for url in lanes.values())
        for channel, lanes in deployed.dispatch.routes.items()
    }


def sentences(answer: Answer) -> Iterator[str]:
    """What was found, a line each."""
    for state, said in _SENTENCES.items():
        if counts := answer.found.get(state):
            yield f"{sum(counts.values()):,} {said} ({_each(counts)})."
    back = _waiting(answer, "missing", "overdue")
    if back:
        yield (
            f"Queues hold messages: {_each(back)}. What merely waits there for its turn would be queued "
            "twice, and sent once."
        )
    gone = _waiting(answer, "gone")
    if gone:
        yield f"Queues hold messages: {_each(gone)}. What is gone from the mailbox may be among them."


def _waiting(answer: Answer, *states: State) -> dict[str, int]:
    """What the queues hold of those channels of which something was found in these states."""
    channels = {channel for state in states for channel in answer.found.get(state, {})}
    return {name: count for name, count in answer.queues.items() if count and name in channels}


def _each(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{channel} {count:,}" for channel, count in counts.items())


def _depth(deployed: Deployed, url: str) -> int:
    attributes = deployed.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    return sum(int(attributes.get(name, 0)) for name in _DEPTHS)
