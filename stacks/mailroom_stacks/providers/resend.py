"""Resend: the secret and the variables of the senders, and the function that receives Resend's webhooks."""

from mailroom.environment import ResendMailEventsSettings, ResendSender
from mailroom.providers import provider
from mailroom_stacks.api import CALLER_SECONDS, ApiStack
from mailroom_stacks.channels import ChannelsStack, Needs
from mailroom_stacks.constructs.function import FunctionSpec
from mailroom_stacks.constructs.grants import Grant
from mailroom_stacks.feedback import FeedbackStack
from mailroom_stacks.settings.settings import Settings


def needs(stack: ChannelsStack, name: str) -> Needs:
    """Return the permission to read the secret, and the URL. Resend has its own handler, so that the sender
    for SES contains no code for Resend."""
    secret, url = stack.feedback.secrets[name], stack.settings.channels["mail"].base_url
    fields = {"resend_secret_arn": secret.secret_arn, "resend_base_url": url or provider(name).url}
    return Needs([secret.read()], ResendSender, fields, handler="send_mail_resend")


def requests(_api: ApiStack, _settings: Settings, feedback: FeedbackStack) -> FunctionSpec:
    """Return the function that receives webhooks."""
    secret, queue = feedback.secrets["resend"], feedback.worker.queue
    return FunctionSpec(
        function="resend-mail-events",
        timeout_seconds=CALLER_SECONDS,
        grants=[secret.read(), Grant(["sqs:SendMessage"], [queue.queue_arn])],
        environment=ResendMailEventsSettings(
            resend_secret_arn=secret.secret_arn, feedback_queue_url=queue.queue_url
        ),
        remedy="Resend retries an event for hours.",
    )
