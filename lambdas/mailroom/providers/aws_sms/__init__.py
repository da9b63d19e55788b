"""Text messages by AWS End User Messaging."""

from mailroom.channels.channel import Provider

_ARN = r"arn:aws[a-z-]*:sms-voice:[a-z0-9-]+:[0-9]{12}:(phone-number|pool|sender-id)/[A-Za-z0-9/_-]+"
# A number, the id of a number or a pool, an ARN, or a sender id.
_SENDER = rf"\+[1-9][0-9]{{6,14}}|(phone|pool)-[0-9a-f]{{32}}|{_ARN}|[A-Za-z0-9_-]{{1,11}}"

PROVIDER = Provider(
    title="AWS",
    channel="sms",
    client="mailroom.providers.aws_sms.sender:AwsSms",
    topic_events="mailroom.providers.aws_sms.events:read",
    one_of=("sender",),
    needed="a number in E.164, a sender id, or the id or ARN of a number or pool",
    sender=_SENDER,
    media_from_bucket=1,
    needs="mailroom_stacks.providers.aws_sms:needs",
    resources="mailroom_stacks.providers.aws_sms:resources",
    checks={"credentials": "mailroom_ops.doctor.checks.channels:aws_sms"},
    variable="SMS_CONFIGURATION_SET",
    unpriced="it differs by country, provider and contract",
)
