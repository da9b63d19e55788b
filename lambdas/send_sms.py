"""Sends text messages: handles a queue's batch, and returns the records that SQS must deliver again."""

from mailroom import environment
from mailroom.channels.sms.adapter import SmsAdapter, text_delivery
from mailroom.delivery.worker import Worker
from mailroom.environment import SmsSender
from mailroom.telemetry import instrumented

settings = environment.read(SmsSender)
worker = Worker.of(settings, SmsAdapter.of(settings), text_delivery)
handler = instrumented(lambda event, context: worker.handle(event, context.get_remaining_time_in_millis))
