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
    url="https://api.twilio.com",
    credentials='{"account_sid", "auth_token"}, and "api_key", "api_key_secret" if requests use a key; '
    "callbacks are signed with the token",
    one_of=("sender", "messaging_service_sid"),
    needed="a number of yours in E.164, such as +12025550123",
    sender=r"\+[1-9][0-9]{6,14}",
    day_limit=True,
    unrepeated=5,
    needs="mailroom_stacks.providers.twilio:needs",
    routes={"/callbacks/twilio/{reference}": "callbacks", "/twilio/inbound": "public"},
    signed_with="the account's token",
    requests="mailroom_stacks.providers.twilio:requests",
    checks={"credentials": "mailroom_ops.doctor.checks.channels:twilio"},
    variable="TWILIO_SECRET_ARN",
    unpriced="it differs by country, provider and contract",
)
