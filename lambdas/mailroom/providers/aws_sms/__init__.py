"""Text messages by AWS End User Messaging."""

from mailroom.channels.channel import Provider

_RESOURCE = "(phone-number|pool|rcs-agent|sender-id)/[A-Za-z0-9/_-]+"
_ARN = rf"arn:aws[a-z-]*:sms-voice:[a-z0-9-]+:[0-9]{{12}}:{_RESOURCE}"
# AWS does not document the length of the id of an RCS agent. Its example, rcs-a1b2c3d4, is longer than a
# sender id: https://docs.aws.amazon.com/sms-voice/latest/userguide/rcs-send-message.html (2026-11-30).
_IDS = "(phone|pool)-[0-9a-f]{32}|rcs-[0-9a-f]{8,}"
_SENDER = rf"\+[1-9][0-9]{{6,14}}|{_IDS}|{_ARN}|[A-Za-z0-9_-]{{1,11}}"

PROVIDER = Provider(
    title="AWS",
    channel="sms",
    client="mailroom.providers.aws_sms.sender:AwsSms",
    topic_events="mailroom.providers.aws_sms.events:read",
    one_of=("sender",),
    needed="a number in E.164, a sender id, or the id or ARN of a number, pool or RCS agent",
    sender=_SENDER,
    media_from_bucket=1,
    needs="mailroom_stacks.providers.aws_sms:needs",
    resources="mailroom_stacks.providers.aws_sms:resources",
    checks={"credentials": "mailroom_ops.doctor.checks.channels:aws_sms"},
    variable="SMS_CONFIGURATION_SET",
    unpriced="it differs by country, provider and contract",
)
