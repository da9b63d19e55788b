"""Takes in what providers say became of messages: one batch of the feedback queue in, those that must come
back out."""

from typing import Any

from mailroom import environment
from mailroom.environment import Feedback as Settings
from mailroom.feedback.consumer import Feedback
from mailroom.telemetry import instrumented

feedback = Feedback.of(environment.read(Settings))


@instrumented
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """One batch of the feedback queue."""
    return feedback.handle(event, context.get_remaining_time_in_millis)
