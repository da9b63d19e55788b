"""Mail by Amazon SES."""

from mailroom.channels.channel import Provider

PLANS = {"essentials": 160e-6, "none": 100e-6, "pro": 220e-6, "enterprise": 230e-6}
"""Prices of a mail in US dollars by the account's plan, for the first ten million of a month in us-east-1, as
of 2026-07-22: https://aws.amazon.com/ses/pricing/, by the transcription api-evangelist/amazon-ses on GitHub.
Since 2026-07-21, a new account has the plan Essentials; an account that has sent since 2025-06-01 has none
until it chooses one."""
FEES = {"pro": 105, "enterprise": 500}
"""Monthly fees of plans in US dollars, from the same list."""

PROVIDER = Provider(
    title="SES",
    channel="mail",
    topic_events="mailroom.providers.ses.events:read",
    day_limit=True,
    # https://docs.aws.amazon.com/ses/latest/DeveloperGuide/mailbox-simulator.html
    test_address="success@simulator.amazonses.com",
    needs="mailroom_stacks.providers.ses:needs",
    resources="mailroom_stacks.providers.ses:resources",
    checks={
        "account": "mailroom_ops.doctor.checks.ses_account:account",
        "quota": "mailroom_ops.doctor.checks.ses_account:quota",
        "reputation": "mailroom_ops.doctor.checks.ses_account:reputation",
        "senders": "mailroom_ops.doctor.checks.ses_account:senders",
        "configuration": "mailroom_ops.doctor.checks.ses_account:configuration",
    },
    variable="CONFIGURATION_SET",
    price=PLANS["essentials"],
    plans=PLANS,
    unpriced="",
    note="SES limits the recipients in 24 hours: see channels.mail.per_day.",
)
