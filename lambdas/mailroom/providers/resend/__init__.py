"""Mail by Resend."""

from mailroom.channels.channel import Provider

PROVIDER = Provider(
    title="Resend",
    channel="mail",
    events={"resend": "mailroom.providers.resend.events:read"},
    url="https://api.resend.com",
    credentials='{"api_key", "webhook_secret"}; the secret signs the events',
    day_limit=True,
    # https://resend.com/docs/dashboard/emails/send-test-emails
    test_address="delivered@resend.dev",
    needs="mailroom_stacks.providers.resend:needs",
    routes={"/callbacks/resend": "public"},
    signed_with="the webhook's secret",
    requests="mailroom_stacks.providers.resend:requests",
    checks={
        "account": "mailroom_ops.doctor.checks.resend_account:key",
        "quota": "mailroom_ops.doctor.checks.resend_account:quota",
        "senders": "mailroom_ops.doctor.checks.resend_account:domains",
        "configuration": "mailroom_ops.doctor.checks.resend_account:webhook",
    },
    variable="RESEND_SECRET_ARN",
    unpriced="Resend's price differs by plan",
    note="Resend has daily and monthly quotas: see the setting per_day.",
)
