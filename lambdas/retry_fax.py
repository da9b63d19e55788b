"""Moves faxes whose wait is over from the retry queue into the fax queue."""

from typing import Any

from mailroom import environment
from mailroom.channels.fax.retry_mover import RetryMover
from mailroom.environment import RetryFax
from mailroom.telemetry import instrumented

mover = RetryMover.of(environment.read(RetryFax))


@instrumented
def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """One batch of the retry queue; the records that must come back."""
    return mover.handle(event)
