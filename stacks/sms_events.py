"""AWS End User Messaging's configuration set: it publishes what became of each SMS."""

from aws_cdk import Stack
from aws_cdk import aws_smsvoice as smsvoice

from stacks.constructs.outputs import publish
from stacks.constructs.topic import EventTopic

SERVICE = "sms-voice.amazonaws.com"
EVENTS = ["TEXT_ALL", "MEDIA_ALL"]


def sms_events(stack: Stack, name: str, topic: EventTopic) -> None:
    """The set `name`, whose events go to `topic`."""
    kind = smsvoice.CfnConfigurationSet
    topic.let_publish(
        SERVICE, stack.format_arn(service="sms-voice", resource="configuration-set", resource_name=name)
    )
    made = kind(
        stack,
        "Sms",
        configuration_set_name=name,
        event_destinations=[
            kind.EventDestinationProperty(
                enabled=True,
                event_destination_name=name,
                matching_event_types=EVENTS,
                sns_destination=kind.SnsDestinationProperty(topic_arn=topic.topic_arn),
            )
        ],
    )
    # It is refused while it may not publish.
    made.node.add_dependency(topic)
    publish(stack, SmsConfigurationSetName=name)
