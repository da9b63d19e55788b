"""Takes Resend's webhooks: a request of the HTTP API in, a message of the feedback queue out."""

from mailroom import environment
from mailroom.environment import ResendEventsSettings
from mailroom.feedback.resend_events import ResendEvents
from mailroom.telemetry import instrumented

events = ResendEvents.of(environment.read(ResendEventsSettings))
handler = instrumented(lambda event, _context: events.answer(event))
