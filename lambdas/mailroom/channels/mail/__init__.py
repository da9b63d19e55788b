"""Mail channel, with the providers Amazon SES and Resend."""

from mailroom.channels.channel import Channel, Estimate
from mailroom.channels.mail.contract import Mail

CHANNEL = Channel(
    contract=Mail,
    choices=[{"anyOf": [{"required": ["to"]}, {"required": ["email"]}]}],
    messages="Mails",
    example={"to": "ada@example.com", "subject": "Welcome", "text": "Hello Ada,\n\nwelcome aboard."},
    rendered=True,
    sent="{provider} accepted it, and has not reported a delivery yet.",
    personal=True,
    estimate=Estimate(events=2, callbacks=2),
    checks={
        "account": "mailroom_ops.doctor.checks.mail:account",
        "quota": "mailroom_ops.doctor.checks.mail:quota",
        "day": "mailroom_ops.doctor.checks.mail:day",
        "reputation": "mailroom_ops.doctor.checks.mail:reputation",
        "senders": "mailroom_ops.doctor.checks.mail:senders",
        "configuration": "mailroom_ops.doctor.checks.mail:configuration",
    },
)
