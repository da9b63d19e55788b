"""Messages that wait, as the ledger holds them."""

from typing import Any

from mailroom.ledger.ledger import Ledger
from mailroom.ledger.waits import SEND_AT, Wait, Waits
from mailroom.message.message import Message
from tests.support.unit.shared import NOW, mail

HOUR = 3600


def waits_of(ledger: Ledger) -> Waits:
    """Return the waits of the same table, by the same clock."""
    return Waits(ledger._client, ledger._table, ledger._ttl, ledger._clock)


def hold(
    ledger: Ledger,
    message: Message | None = None,
    due: float = NOW + HOUR,
    reason: str = SEND_AT,
    **more: Any,
) -> bool:
    """Hold a message, and return whether it waits now."""
    wait = Wait(message or mail(), reason, due, **{"version": "v-1", **more})
    return waits_of(ledger).hold([wait]) == [True]
