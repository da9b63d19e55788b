"""What `reconcile` found and did, for programs and for people."""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from ops.reconcile.found import Named
from ops.reconcile.judge import State
from ops.reconcile.look import Table
from ops.resend.deployed import Deployed
from ops.stage import depth

_SENTENCES: dict[State, str] = {
    "missing": "are in the mailbox, and unknown to the ledger",
    "overdue": "were begun, and should have moved on long ago",
    "dead_letters": "lie in a dead-letter queue, and are left there: see mailroom dead-letters",
    "gone": "were begun, and their item is gone from the mailbox; they may have been sent, or still be "
    "queued: ask the provider first, and end them by mailroom settle; to put one there again under a new id "
    "may send it twice",
    "undated": "are unknown to the ledger, and may be older than it remembers, so they may have been sent: "
    "mailroom reconcile ID... puts back those of which you know that they were not, --undated all of them",
}


_NAMED: dict[str, str] = {
    "moving": "on its way, or over; mailroom status says which",
    "dead_letters": "in a dead-letter queue",
    "unknown": "neither the mailbox nor the ledger has it; check the id, --channel and --stage",
}
"""Of a message that was named, where its state alone says too little."""
_SHOWN = 50


class Answer(Struct, frozen=True, kw_only=True):
    """`looked_at`: items, by table. `found`: messages by state and channel, as they stood before; those that
    had moved on by themselves are left out. `vouched`: so many of the missing ones may be older than the
    ledger remembers, and go back on the operator's word. `messages`: each of those that were named; none
    where the whole stage was looked at. `queues`: messages in each channel's queues, roughly. `put_back`: by
    channel; `failed`: could not be put back. `look`: the file that keeps what was seen, "" where it is done
    with."""

    stage: str
    dry_run: bool
    older_than_seconds: int
    looked_at: dict[Table, int]
    found: dict[State, dict[str, int]]
    vouched: int
    messages: list[Named]
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
        unknown = any(each.state == "unknown" for each in self.messages)
        return bool(self.failed or unknown or any(map(self.found.get, kept)) or (self.dry_run and self.stuck))


def depths(deployed: Deployed) -> dict[str, int]:
    """How many messages each channel's queues hold, roughly."""
    return {
        channel: sum(depth(deployed.sqs, url).all for url in lanes.values())
        for channel, lanes in deployed.dispatch.routes.items()
    }


def sentences(answer: Answer) -> Iterator[str]:
    """What was found, a line each."""
    for each in answer.messages[:_SHOWN]:
        channel = f" ({each.event_type})" if each.event_type else ""
        yield f"{each.id}{channel}: {_NAMED.get(each.state, each.state)}"
    if len(answer.messages) > _SHOWN:
        yield f"and {len(answer.messages) - _SHOWN:,} more; --json has all."
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
