"""Lets people opt out of a topic, and in again: a request of the HTTP API in, a page out."""

from mailroom import environment
from mailroom.environment import UnsubscribeSettings
from mailroom.telemetry import instrumented
from mailroom.unsubscribe.application import Unsubscribe

unsubscribe = Unsubscribe.of(environment.read(UnsubscribeSettings))
handler = instrumented(lambda event, _context: unsubscribe.answer(event))
