"""Moves faxes whose wait has ended from the retry queue into the fax queue."""

from mailroom import environment
from mailroom.channels.fax.retry_mover import RetryMover
from mailroom.environment import RetryFaxSettings
from mailroom.telemetry import instrumented

mover = RetryMover.of(environment.read(RetryFaxSettings))
handler = instrumented(lambda event, _context: mover.handle(event))
