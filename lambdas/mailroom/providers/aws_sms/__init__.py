"""Text messages by AWS End User Messaging."""

from mailroom.channels.channel import Provider

PROVIDER = Provider(
    title="AWS",
    channel="sms",
    client="mailroom.providers.aws_sms.sender:AwsSms",
    topic_events="mailroom.providers.aws_sms.events:read",
)
