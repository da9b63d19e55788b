"""Handles a batch of the feedback queue: writes providers' events into the ledger, and returns the records
that SQS must deliver again."""

from mailroom import environment
from mailroom.environment import FeedbackSettings
from mailroom.feedback.consumer import Feedback
from mailroom.telemetry import instrumented

feedback = Feedback.of(environment.read(FeedbackSettings))
handler = instrumented(lambda event, context: feedback.handle(event, context.get_remaining_time_in_millis))
