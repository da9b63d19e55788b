"""Lets people opt out of a topic and in again: handles a request of the HTTP API, and returns a page."""

from mailroom import environment
from mailroom.environment import UnsubscribeSettings
from mailroom.telemetry import instrumented
from mailroom.unsubscribe.application import Unsubscribe

unsubscribe = Unsubscribe.of(environment.read(UnsubscribeSettings))
handler = instrumented(lambda event, _context: unsubscribe.answer(event))
