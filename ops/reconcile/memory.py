"""Whether the ledger still knows every message of the mailbox that was ever taken up."""

from msgspec import Struct

from mailroom.ledger.reader import REMEMBERED_SECONDS
from ops.reconcile.tables import Tables

DAY = 86_400.0
_DEPLOYED_SECONDS = 3_600.0
"""Within it one deployment makes both tables."""


class Memory(Struct, frozen=True):
    """The ledger's. `complete`: it has forgotten nothing so far. Otherwise a message that it does not know
    may have been sent before, and must not be sent again.

    Nothing that a producer wrote counts: `send_at` and `ttl` may have been changed after the message was
    sent. Nor does the setting of today: an item lives by the setting that held when it was written.
    """

    complete: bool
    vouched: bool = False
    """Whether the operator's word counts for what it may have forgotten."""

    @classmethod
    def of(cls, tables: Tables, ttl: float, now: float, *, vouched: bool) -> "Memory":
        """A stage's. `ttl`: what its functions are set to now, in seconds; a stage of an older version may
        have less than the least of this one."""
        ledger, mailbox = tables.ledger, tables.mailbox
        # What its predecessor, or the table that was backed up, knew is not known to it.
        first = ledger.since <= mailbox.since + _DEPLOYED_SECONDS
        restored = ledger.restored or mailbox.restored
        forgot = now - ledger.since > min(ttl, REMEMBERED_SECONDS) - DAY
        return cls(first and not restored and not forgot, vouched)
