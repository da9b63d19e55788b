"""Channel for text messages, with the providers Twilio and AWS."""

from mailroom.channels.channel import Channel, Estimate
from mailroom.channels.sms.contract import Sms

CHANNEL = Channel(
    contract=Sms,
    choices=[
        {"required": ["to"]},
        {"anyOf": [{"required": [name]} for name in ("text", "template", "media_urls", "payload_ref")]},
    ],
    message="text",
    messages="Texts",
    example={"to": "+16175551234", "text": "Your code is 123456"},
    rendered=True,
    sent="{provider} accepted it, and has not reported a delivery yet.",
    personal=True,
    estimate=Estimate(
        latency=0.3,
        ledger_units=3.0,  # claim, completion, and entry in the index of phone numbers
        events=3,
        callbacks=2,
    ),
    checks={"credentials": "mailroom_ops.doctor.checks.channels:sms_credentials"},
)
