"""Twilio: the secret and the variables of the senders, and the function that receives Twilio's requests."""

from mailroom.environment import SmsSender, TwilioCallbacksSettings
from mailroom_stacks.api import CALLER_SECONDS, ApiStack
from mailroom_stacks.channels import ChannelsStack, Needs
from mailroom_stacks.constructs.function import FunctionSpec
from mailroom_stacks.constructs.grants import Grant
from mailroom_stacks.feedback import FeedbackStack
from mailroom_stacks.settings.settings import Settings


def needs(stack: ChannelsStack, name: str) -> Needs:
    """Return the permission to read the secret, the sender, and the URL of status callbacks. Media need no
    permission, because Twilio gets presigned URLs of media in the payload bucket."""
    secret, section = stack.feedback.secrets[name], stack.settings.sms_by(name)
    fields = {
        "twilio_secret_arn": secret.secret_arn,
        "sms_base_url": section.url,
        "messaging_service_sid": section.messaging_service_sid or "",
        "callback_url": f"{stack.api.public_url}/callbacks/twilio",
    }
    return Needs([secret.read()], SmsSender, fields)


def requests(api: ApiStack, settings: Settings, feedback: FeedbackStack) -> FunctionSpec:
    """Return the function that receives status callbacks, and texts that people send."""
    secret, queue = feedback.secrets["twilio"], feedback.worker.queue
    section = settings.sms_by("twilio")
    return FunctionSpec(
        function="twilio-callbacks",
        timeout_seconds=CALLER_SECONDS,
        grants=[secret.read(), Grant(["sqs:SendMessage"], [queue.queue_arn])],
        environment=TwilioCallbacksSettings(
            twilio_secret_arn=secret.secret_arn,
            public_url=api.public_url,
            feedback_queue_url=queue.queue_url,
            sms_base_url=section.url,
            stop_words=section.stop_words,
            start_words=section.start_words,
        ),
        remedy="Twilio retries a status callback for a few seconds only.",
    )
