"""Dispatches messages when their `send_at` comes: receives keys, and puts messages into the channels'
queues."""

from mailroom import environment
from mailroom.dispatch.due import DueDispatcher
from mailroom.environment import DispatchScheduledSettings
from mailroom.telemetry import instrumented

due = DueDispatcher.of(environment.read(DispatchScheduledSettings))
handler = instrumented(lambda event, _context: due.handle(event))
