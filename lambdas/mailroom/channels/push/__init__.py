"""Channel for push notifications, with the provider Amazon SNS."""

from mailroom.channels.channel import Channel
from mailroom.channels.push.contract import Push

CHANNEL = Channel(
    contract=Push,
    choices=[
        {"required": ["to"]},
        {"anyOf": [{"required": [name]} for name in ("title", "body", "data", "payload_ref")]},
    ],
    messages="Pushes",
    example={
        "to": "android-device-7",
        "platform": "android",
        "title": "Your order",
        "body": "It is on its way.",
    },
    rendered=True,
    sent="{provider} accepted it. {provider} does not report deliveries.",
    personal=True,
    checks={"applications": "mailroom_ops.doctor.checks.channels:applications"},
)
