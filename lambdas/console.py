"""The console behind a team's sign-in, for reading: handles a request of its HTTP API, and returns a page."""

import os

from mailroom import environment
from mailroom.environment import ConsoleSettings
from mailroom.telemetry import instrumented
from mailroom_ops.console.function import handler_of

handler = instrumented(handler_of(environment.read(ConsoleSettings), os.environ["MAILROOM_STAGE"]))
