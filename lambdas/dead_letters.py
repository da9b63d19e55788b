"""Reads the dead-letter queues: logs each dead letter once, and marks its message in the ledger."""

from mailroom import environment
from mailroom.dead_letters.passes import DeadLetterInspector
from mailroom.telemetry import instrumented

inspector = DeadLetterInspector.of(environment.read(environment.DeadLettersSettings))
handler = instrumented(lambda _event, context: inspector.handle(context.get_remaining_time_in_millis))
"""Handle one pass, and return the number of dead letters and of new dead letters by queue."""
