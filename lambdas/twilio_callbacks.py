"""Takes Twilio's status callbacks: a request of the HTTP API in, a message of the feedback queue out."""

from typing import Any

from mailroom import environment
from mailroom.environment import TwilioCallbacks as Settings
from mailroom.feedback.twilio_callbacks import TwilioCallbacks
from mailroom.telemetry import instrumented

callbacks = TwilioCallbacks.of(environment.read(Settings))


@instrumented
def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """One request; its response."""
    return callbacks.answer(event)
