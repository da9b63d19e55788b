"""Which of the messages that the ledger does not know it would still know, had they ever been taken up."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mailroom.clock import epoch
from ops.reconcile.tables import Tables

Item = Mapping[str, Any]

DAY = 86_400.0
_DEPLOYED_SECONDS = 3_600.0
"""Within it one deployment makes both tables."""


class Memory(Struct, frozen=True):
    """The ledger's: it was made at `since` (epoch seconds), and keeps an item for `ttl` seconds after its
    last change. A message without an item may have been sent before that, and must not be sent again."""

    since: float
    ttl: float
    whole: bool = True
    """Whether it was there before any of the mailbox's items. One that was made anew was not: what its
    predecessor knew, it does not."""
    vouched: bool = False
    """Whether the operator's word counts for what it may have forgotten."""

    @classmethod
    def of(cls, tables: Tables, ttl: float, *, vouched: bool) -> "Memory":
        """A stage's."""
        ledger, mailbox = tables.ledger, tables.mailbox
        first = ledger.since <= mailbox.since + _DEPLOYED_SECONDS
        whole = first and not (ledger.restored or mailbox.restored)
        return cls(ledger.since, ttl, whole, vouched)

    def covers(self, item: Item, now: float) -> bool:
        """Whether an item of the mailbox would still have its ledger item, had it ever been taken up."""
        oldest = now - self.ttl + DAY
        if self.whole and self.since > oldest:
            return True
        known = oldest if self.whole else max(oldest, self.since)
        try:
            return epoch(item["send_at"]) > known  # it was taken up then, and not before
        except (KeyError, TypeError, ValueError, OverflowError):
            return False
