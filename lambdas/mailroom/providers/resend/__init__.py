"""Mail by Resend."""

from mailroom.channels.channel import Provider

PROVIDER = Provider(
    title="Resend",
    channel="mail",
    events={"resend": "mailroom.providers.resend.events:read"},
)
