"""Dispatches messages whose `send_at` has come: keys in, queue messages out."""

from typing import Any

from mailroom import environment
from mailroom.dispatch.due import Due
from mailroom.environment import DispatchScheduled
from mailroom.telemetry import instrumented

due = Due.of(environment.read(DispatchScheduled))


@instrumented
def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """One batch of the scheduled queue; the records that must come back."""
    return due.handle(event)
