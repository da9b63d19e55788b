"""Receives Resend's webhooks: verifies a request of the HTTP API, and puts the event into the feedback
queue."""

from mailroom import environment
from mailroom.environment import ResendEventsSettings
from mailroom.feedback.resend_events import ResendEvents
from mailroom.telemetry import instrumented

events = ResendEvents.of(environment.read(ResendEventsSettings))
handler = instrumented(lambda event, _context: events.answer(event))
