"""What sending SMS by Twilio or by AWS needs."""

from aws_cdk import Stack

from stacks.constructs.grants import Grant
from stacks.providers.around import Around
from stacks.providers.needs import Needs
from stacks.settings.sms import Sms
from stacks.settings.stage import Settings


def needs(stack: Stack, around: Around) -> Needs:
    """The provider's own, and the templates. Media take no more: of those in the payload bucket Twilio gets
    URLs that the sender signs, and AWS reads them with the sender's permissions."""
    section = around.settings.sms
    if section is None:  # then there is no row either: see the rules
        return Needs()
    of_provider = _twilio if section.provider == "twilio" else _aws
    provider = of_provider(stack, around, section)
    return Needs(
        grants=[
            *provider.grants,
            around.find_unwilling(),
            around.mark_suppressed(),
            around.find_by_number(),
        ],
        environment={
            **around.unwilling(),
            "SMS_PROVIDER": section.provider,
            "SMS_SENDER": section.sender or "",
            "DEFAULT_REGION": around.settings.default_region,
            "MAX_SEGMENTS": str(section.max_segments),
            "MEDIA_SECONDS": str(section.media_seconds),
            "CLOCK_SKEW_SECONDS": str(section.clock_skew_seconds),
            **provider.environment,
        },
        templates="sms",
    )


def _twilio(_: Stack, around: Around, section: Sms) -> Needs:
    secret = around.feedback.twilio_secret
    assert secret is not None
    return Needs(
        [secret.read()],
        {
            "TWILIO_SECRET_ARN": secret.secret_arn,
            "SMS_BASE_URL": section.url,
            "MESSAGING_SERVICE_SID": section.messaging_service_sid or "",
            "CALLBACK_URL": around.api.twilio_url,
        },
    )


def _aws(stack: Stack, around: Around, section: Sms) -> Needs:
    name = around.settings.sms_configuration_set or ""
    return Needs(
        [_send(stack, str(section.sender)), _with_set(stack, around.settings)],
        {"SMS_CONFIGURATION_SET": name},
    )


ACTIONS = ("sms-voice:SendTextMessage", "sms-voice:SendMediaMessage")


def _send(stack: Stack, sender: str) -> Grant:
    """Sending as `sender`: https://docs.aws.amazon.com/sms-voice/latest/userguide/permissions-actions.html."""
    if sender.startswith("arn:"):
        return Grant(ACTIONS, [sender])
    resource, name, wildcard = _identity(sender)
    return Grant(
        ACTIONS,
        [stack.format_arn(service="sms-voice", resource=resource, resource_name=name)],
        wildcard=wildcard,
    )


def _identity(sender: str) -> tuple[str, str, str]:
    """The resource of an origination identity: its type, its name, and why that is not exact."""
    if sender.startswith("pool-"):
        return "pool", sender, ""
    if sender.startswith("phone-"):
        return "phone-number", sender, ""
    if sender.lstrip("+").isdigit():
        return "phone-number", "*", "IAM knows a number by its id alone; the id or ARN as sender names it."
    return "sender-id", f"{sender}/*", "A sender id is registered once for each country that it sends to."


def _with_set(stack: Stack, settings: Settings) -> Grant:
    name = settings.sms_configuration_set
    arn = stack.format_arn(service="sms-voice", resource="configuration-set", resource_name=name)
    return Grant(ACTIONS, [arn])
