"""Sends webhooks, messages and status callbacks: one queue batch in, the records that must come back out."""

from typing import Any

from mailroom import environment
from mailroom.channels.webhook.delivery import WebhookDelivery
from mailroom.channels.webhook.standard_webhooks import StandardWebhooks
from mailroom.delivery.worker import Worker
from mailroom.environment import WebhookSender
from mailroom.telemetry import instrumented

settings = environment.read(WebhookSender)
# Its clients live as long as the process.
worker = Worker.of(settings, StandardWebhooks.of(settings), WebhookDelivery)


@instrumented
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """One batch of the webhook queue."""
    return worker.handle(event, context.get_remaining_time_in_millis)
