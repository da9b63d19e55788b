"""Mail by Amazon SES."""

from mailroom.channels.channel import Provider

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
    price=100e-6,
    unpriced="",
    note="SES limits the recipients in 24 hours: see channels.mail.per_day.",
)
