"""Sends mail by SES: handles a queue's batch, and returns the records that SQS must deliver again."""

from mailroom import environment
from mailroom.delivery.delivery import to_people
from mailroom.delivery.worker import Worker
from mailroom.environment import SesSender
from mailroom.providers.ses.sender import SesMail
from mailroom.telemetry import instrumented

settings = environment.read(SesSender)
worker = Worker.of(settings, SesMail.of(settings), to_people)
handler = instrumented(lambda event, context: worker.handle(event, context.get_remaining_time_in_millis))
"""Handler of batches of the function's queue, which is mail or mail-bulk."""
