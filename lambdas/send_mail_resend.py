"""Sends mail by Resend: handles a queue's batch, and returns the records that SQS must deliver again."""

from mailroom import environment
from mailroom.delivery.delivery import to_people
from mailroom.delivery.worker import Worker
from mailroom.environment import ResendSender
from mailroom.providers.resend.sender import ResendMail
from mailroom.telemetry import instrumented

settings = environment.read(ResendSender)
worker = Worker.of(settings, ResendMail.of(settings), to_people)
handler = instrumented(lambda event, context: worker.handle(event, context.get_remaining_time_in_millis))
"""Handler of batches of the function's queue, which is mail or mail-bulk."""
