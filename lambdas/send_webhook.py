"""Sends webhooks, messages and status callbacks: one queue batch in, the records that must come back out."""

from mailroom import environment
from mailroom.channels.webhook.delivery import WebhookDelivery
from mailroom.channels.webhook.standard_webhooks import StandardWebhooks
from mailroom.delivery.worker import Worker
from mailroom.environment import WebhookSender
from mailroom.telemetry import instrumented

settings = environment.read(WebhookSender)
worker = Worker.of(settings, StandardWebhooks.of(settings), WebhookDelivery)
handler = instrumented(lambda event, context: worker.handle(event, context.get_remaining_time_in_millis))
