"""Lets people opt out of a topic, and in again: a request of the HTTP API in, a page out."""

from typing import Any

from mailroom import environment
from mailroom.environment import Unsubscribe as Settings
from mailroom.telemetry import instrumented
from mailroom.unsubscribe.unsubscribe import Unsubscribe

unsubscribe = Unsubscribe.of(environment.read(Settings))


@instrumented
def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """One request; its response."""
    return unsubscribe.answer(event)
