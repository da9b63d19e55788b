"""Sends webhooks (messages and status callbacks): handles a queue's batch, and returns the records that SQS
must deliver again."""

from mailroom import environment
from mailroom.channels.webhook.delivery import WebhookDelivery
from mailroom.delivery.worker import Worker
from mailroom.environment import WebhookSender
from mailroom.providers.webhooks.sender import StandardWebhooks
from mailroom.telemetry import instrumented

settings = environment.read(WebhookSender)
worker = Worker.of(settings, StandardWebhooks.of(settings), WebhookDelivery)
handler = instrumented(lambda event, context: worker.handle(event, context.get_remaining_time_in_millis))
