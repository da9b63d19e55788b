"""Takes Twilio's status callbacks: a request of the HTTP API in, a message of the feedback queue out."""

from mailroom import environment
from mailroom.environment import TwilioCallbacksSettings
from mailroom.feedback.twilio_callbacks import TwilioCallbacks
from mailroom.telemetry import instrumented

callbacks = TwilioCallbacks.of(environment.read(TwilioCallbacksSettings))
handler = instrumented(lambda event, _context: callbacks.answer(event))
