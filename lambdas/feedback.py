"""Takes in what providers say became of messages: one batch of the feedback queue in, those that must come
back out."""

from mailroom import environment
from mailroom.environment import FeedbackSettings
from mailroom.feedback.consumer import Feedback
from mailroom.telemetry import instrumented

feedback = Feedback.of(environment.read(FeedbackSettings))
handler = instrumented(lambda event, context: feedback.handle(event, context.get_remaining_time_in_millis))
