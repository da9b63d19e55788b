"""Text messages by Twilio."""

from mailroom.channels.channel import Provider

PROVIDER = Provider(
    title="Twilio",
    channel="sms",
    client="mailroom.providers.twilio.sender:TwilioSms",
    events={
        "twilio": "mailroom.providers.twilio.events:read",
        "twilio-text": "mailroom.providers.twilio.events:read_text",
    },
)
