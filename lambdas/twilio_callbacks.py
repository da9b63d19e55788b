"""Receives status callbacks from Twilio, and text messages from people: verifies a request of the HTTP API,
and puts a callback, STOP or START into the feedback queue."""

from mailroom import environment
from mailroom.environment import TwilioCallbacksSettings
from mailroom.providers.twilio.callbacks import TwilioCallbacks
from mailroom.telemetry import instrumented

callbacks = TwilioCallbacks.of(environment.read(TwilioCallbacksSettings))
handler = instrumented(lambda event, _context: callbacks.answer(event))
