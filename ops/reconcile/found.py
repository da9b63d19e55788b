"""What a run found, counted; and each message that was named."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct

from mailroom.message.message import Key
from ops.reconcile.judge import Finding, State


class Named(Struct, frozen=True):
    """One message that was named, as it stood before. moving: it is on its way, or over. unknown: neither
    table has it. `vouched`: the ledger may have forgotten it."""

    id: str
    event_type: str
    state: State | Literal["unknown"]
    vouched: bool = False


class Found:
    """Takes findings. With `each` it keeps them one by one as well."""

    def __init__(self, *, each: bool) -> None:
        self.vouched = 0
        """How many go back on the operator's word alone."""
        self._each = each
        self._counts: Counter[tuple[State, str]] = Counter()
        self._messages: list[Named] = []

    def take(self, findings: Mapping[Key, Finding]) -> None:
        """Count some."""
        for key, finding in findings.items():
            self._counts[finding.state, key.event_type] += 1
            self.vouched += finding.vouched
            if self._each:
                self._messages.append(Named(key.id, key.event_type, finding.state, finding.vouched))

    def by_state(self) -> dict[State, dict[str, int]]:
        """The counts that tell of trouble, by state and then by channel."""
        found: dict[State, dict[str, int]] = {}
        for (state, channel), count in sorted(self._counts.items()):
            if state != "moving":
                found.setdefault(state, {})[channel] = count
        return found

    def messages(self, unknown: Iterable[Key]) -> list[Named]:
        """Those that were kept, and those that there are not."""
        return [*self._messages, *(Named(key.id, key.event_type, "unknown") for key in unknown)]
