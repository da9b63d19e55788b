"""Sends mail by Resend: one queue batch in, the records that must come back out."""

from mailroom import environment
from mailroom.channels.mail.resend import ResendMail
from mailroom.delivery.delivery import to_people
from mailroom.delivery.worker import Worker
from mailroom.environment import ResendSender
from mailroom.telemetry import instrumented

settings = environment.read(ResendSender)
worker = Worker.of(settings, ResendMail.of(settings), to_people)
handler = instrumented(lambda event, context: worker.handle(event, context.get_remaining_time_in_millis))
"""One batch of the mail or the mail-bulk queue, whichever the function is set up for."""
