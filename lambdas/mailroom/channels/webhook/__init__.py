"""Channel for webhooks, which are signed as the Standard Webhooks specification requires."""

from mailroom.channels.channel import Channel, Estimate
from mailroom.channels.webhook.contract import Webhook

CHANNEL = Channel(
    contract=Webhook,
    choices=[{"anyOf": [{"required": ["payload"]}, {"required": ["payload_ref"]}]}],
    messages="Webhooks",
    example={"url": "https://hooks.example.com/orders", "payload": '{"order": 42}'},
    sent="The endpoint accepted it.",
    personal=True,
    estimate=Estimate(latency=0.3),
)
