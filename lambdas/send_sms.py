"""Sends text messages: handles a queue's batch, and returns the records that SQS must deliver again."""

from mailroom import environment
from mailroom.channels.sms.adapter import SmsAdapter, text_delivery
from mailroom.delivery.worker import Worker
from mailroom.environment import SmsSender
from mailroom.providers import provider
from mailroom.telemetry import instrumented

settings = environment.read(SmsSender)
adapter = SmsAdapter.of(settings, provider(settings.sms_provider))
worker = Worker.of(settings, adapter, text_delivery)
handler = instrumented(lambda event, context: worker.handle(event, context.get_remaining_time_in_millis))
