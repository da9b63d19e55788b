"""Sends mail by SES: one queue batch in, the records that must come back out."""

from mailroom import environment
from mailroom.channels.mail.ses import SesMail
from mailroom.delivery.delivery import to_people
from mailroom.delivery.worker import Worker
from mailroom.environment import SesSender
from mailroom.telemetry import instrumented

settings = environment.read(SesSender)
worker = Worker.of(settings, SesMail.of(settings), to_people)
handler = instrumented(lambda event, context: worker.handle(event, context.get_remaining_time_in_millis))
"""One batch of the mail or the mail-bulk queue, whichever the function is set up for."""
