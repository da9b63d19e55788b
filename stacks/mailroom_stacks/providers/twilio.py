"""Twilio: the secret and the variables of the senders, and the function that receives Twilio's requests."""

from mailroom.environment import SmsSender, TwilioCallbacksSettings
from mailroom_stacks.api import CALLER_SECONDS, ApiStack, Requests
from mailroom_stacks.channels import ChannelsStack, Needs
from mailroom_stacks.constructs.function import FunctionSpec
from mailroom_stacks.constructs.grants import Grant
from mailroom_stacks.feedback import FeedbackStack
from mailroom_stacks.settings.settings import Settings

PATH = "/callbacks/twilio"
INBOUND_PATH = "/twilio/inbound"


def needs(stack: ChannelsStack, name: str) -> Needs:
    """Return the permission to read the secret, the sender, and the URL of status callbacks. Media need no
    permission, because Twilio gets presigned URLs of media in the payload bucket."""
    secret, section = stack.feedback.secrets[name], stack.settings.sms_by(name)
    fields = {
        "twilio_secret_arn": secret.secret_arn,
        "sms_base_url": section.url,
        "messaging_service_sid": section.messaging_service_sid or "",
        "callback_url": f"{stack.api.public_url}{PATH}",
    }
    return Needs([secret.read()], SmsSender, fields)


def requests(api: ApiStack, settings: Settings, feedback: FeedbackStack) -> Requests:
    """Return the routes of status callbacks and of texts that people send."""
    parts = {f"{PATH}/{{reference}}": "callbacks", INBOUND_PATH: "public"}
    reason = "Twilio signs each request with the account's token; the function verifies it."
    secret, queue = feedback.secrets.get("twilio"), feedback.worker.queue
    if secret is None:
        return Requests(parts, reason, None)
    section = settings.sms_by("twilio")
    spec = FunctionSpec(
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
    return Requests(parts, reason, spec)
