"""The answer of `reconcile --json`."""

from typing import Literal

from msgspec import Struct

from ops.reconcile.states import State

Table = Literal["mailbox", "ledger"]


class NamedMessage(Struct, frozen=True):
    """One message that was named, as it stood before. moving: it is on its way, or over. unknown: neither
    table has it. `vouched`: the ledger may have forgotten it."""

    id: str
    event_type: str
    state: State | Literal["unknown"]
    vouched: bool = False


class Reconciled(Struct, frozen=True, kw_only=True):
    """`looked_at`: items, by table. `found`: messages by state and channel, as they stood before; those that
    had moved on by themselves are left out. `vouched`: so many of the missing ones may be older than the
    ledger remembers, and are requeued on the operator's word. `messages`: each message that was named; empty
    if the whole stage was scanned. `queues`: messages in each channel's queues, roughly. `put_back`: how many
    were requeued, by channel; `failed`: how many could not be."""

    stage: str
    dry_run: bool
    older_than_seconds: int
    looked_at: dict[Table, int]
    found: dict[State, dict[str, int]]
    vouched: int
    messages: list[NamedMessage]
    queues: dict[str, int]
    put_back: dict[str, int]
    failed: int

    @property
    def stuck(self) -> int:
        """How many messages are to be requeued."""
        return sum(sum(self.found.get(state, {}).values()) for state in ("missing", "overdue"))

    @property
    def incomplete(self) -> bool:
        """Whether a message is left that should be on its way and is not, or may not be."""
        kept = any(self.found.get(state) for state in ("gone", "dead_letters", "undated"))
        unknown = any(each.state == "unknown" for each in self.messages)
        return bool(self.failed or unknown or kept or (self.dry_run and self.stuck))
