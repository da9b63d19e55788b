"""AWS End User Messaging: the permission to send, and the configuration set with its events."""

from aws_cdk import Stack
from aws_cdk import aws_smsvoice as smsvoice

from mailroom.environment import SmsSender
from mailroom_stacks.channels import ChannelsStack, Needs
from mailroom_stacks.constructs.grants import Grant
from mailroom_stacks.constructs.naming import publish
from mailroom_stacks.constructs.topic import EventTopic
from mailroom_stacks.feedback import FeedbackStack
from mailroom_stacks.settings.settings import Settings


def needs(stack: ChannelsStack, name: str) -> Needs:
    """Return the permission to send, and the configuration set."""
    section, set_name = stack.settings.sms_by(name), stack.settings.name()
    arn = stack.format_arn(service="sms-voice", resource="configuration-set", resource_name=set_name)
    grants = [send_sms(stack, str(section.sender)), Grant(SMS_ACTIONS, [arn])]
    return Needs(grants, SmsSender, {"sms_configuration_set": set_name})


SMS_ACTIONS = ("sms-voice:SendTextMessage", "sms-voice:SendMediaMessage")


def send_sms(stack: Stack, sender: str) -> Grant:
    """Return the permission to send with the origination identity `sender`:
    https://docs.aws.amazon.com/sms-voice/latest/userguide/permissions-actions.html."""
    if sender.startswith("arn:"):
        return Grant(SMS_ACTIONS, [sender])
    resource, name, wildcard = _identity(sender)
    return Grant(
        SMS_ACTIONS,
        [stack.format_arn(service="sms-voice", resource=resource, resource_name=name)],
        wildcard=wildcard,
    )


LONGEST_SENDER_ID = 11
_RESOURCES = {"phone": "phone-number", "pool": "pool", "rcs": "rcs-agent"}
"""Types of resources by the beginning of their ids."""


def _identity(sender: str) -> tuple[str, str, str]:
    """Return the type and name of the resource of an origination identity, and the reason for a wildcard in
    the name."""
    if len(sender) > LONGEST_SENDER_ID and (resource := _RESOURCES.get(sender.partition("-")[0])):
        return resource, sender, ""
    if sender.lstrip("+").isdigit():
        return "phone-number", "*", "A number's ARN contains its id: to avoid *, use the id or ARN as sender."
    return "sender-id", f"{sender}/*", "A sender id is registered once for each country that it sends to."


def resources(stack: FeedbackStack, settings: Settings) -> None:
    """Create the configuration set if AWS sends text messages."""
    if "aws" in settings.providers("sms"):
        sms_events(stack, settings.name(), stack.topic)


def sms_events(stack: Stack, name: str, topic: EventTopic) -> None:
    """Create the configuration set `name`, whose events go to `topic`. Text messages that people send to the
    account's numbers may go there too. AWS does not document which resource publishes these texts, so the
    policy is that of "Topic policies for Amazon SNS topics" in the service's user guide."""
    kind = smsvoice.CfnConfigurationSet
    topic.let_publish("sms-voice", stack.format_arn(service="sms-voice", resource="*"))
    configuration_set = kind(
        stack,
        "Sms",
        configuration_set_name=name,
        event_destinations=[
            kind.EventDestinationProperty(
                enabled=True,
                event_destination_name=name,
                matching_event_types=["TEXT_ALL", "MEDIA_ALL", "RCS_ALL"],
                sns_destination=kind.SnsDestinationProperty(topic_arn=topic.topic_arn),
            )
        ],
    )
    # AWS End User Messaging rejects the configuration set until it has permission to publish to the topic.
    configuration_set.node.add_dependency(topic)
    publish(stack, SmsConfigurationSetName=name)
