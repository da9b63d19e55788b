"""Dispatches messages whose `send_at` has come: keys in, queue messages out."""

from mailroom import environment
from mailroom.dispatch.due import DueDispatcher
from mailroom.environment import DispatchScheduledSettings
from mailroom.telemetry import instrumented

due = DueDispatcher.of(environment.read(DispatchScheduledSettings))
handler = instrumented(lambda event, _context: due.handle(event))
