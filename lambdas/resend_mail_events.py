"""Receives Resend's webhooks: verifies a request of the HTTP API, and puts the event into the feedback
queue."""

from mailroom import environment
from mailroom.environment import ResendMailEventsSettings
from mailroom.providers.resend.webhook import ResendMailEvents
from mailroom.telemetry import instrumented

events = ResendMailEvents.of(environment.read(ResendMailEventsSettings))
handler = instrumented(lambda event, _context: events.answer(event))
