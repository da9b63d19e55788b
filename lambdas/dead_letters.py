"""Reads the dead-letter queues: marks the messages of dead letters in the ledger, and logs their causes."""

from mailroom import environment
from mailroom.dead_letters.inspector import DeadLetterInspector
from mailroom.telemetry import instrumented

inspector = DeadLetterInspector.of(environment.read(environment.DeadLettersSettings))
handler = instrumented(lambda _event, context: inspector.handle(context.get_remaining_time_in_millis))
"""Handler of one pass, which returns the number of dead letters by queue."""
