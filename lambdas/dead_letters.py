"""Looks through the dead-letter queues: tells of each letter once, and marks its message in the ledger."""

from mailroom import environment
from mailroom.dead_letters.passes import DeadLetters
from mailroom.telemetry import instrumented

letters = DeadLetters.of(environment.read(environment.DeadLetters))
handler = instrumented(lambda event, context: letters.handle(event, context.get_remaining_time_in_millis))
"""One pass; how many letters were seen and how many of them are new, by queue."""
