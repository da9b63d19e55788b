"""Mail by Amazon SES."""

from mailroom.channels.channel import Provider

PROVIDER = Provider(
    title="SES",
    channel="mail",
    topic_events="mailroom.providers.ses.events:read",
)
