"""Permissions and variables of a sender by Acme, and the function that receives Acme's requests."""

from msgspec import Struct

from mailroom_stacks.api import ApiStack
from mailroom_stacks.channels import ChannelsStack, Needs
from mailroom_stacks.constructs.function import FunctionSpec
from mailroom_stacks.feedback import FeedbackStack
from mailroom_stacks.settings.settings import Settings
from tests.support.acme.provider.sender import AcmeSender


class AcmeRequests(Struct, frozen=True):
    """Settings of the function, which needs none."""


def needs(stack: ChannelsStack, name: str) -> Needs:
    secret, section = stack.feedback.secrets[name], stack.settings.sms_by(name)
    fields = {"acme_url": section.url, "acme_secret_arn": secret.secret_arn}
    return Needs([secret.read()], AcmeSender, fields)


def requests_function(_api: ApiStack, _settings: Settings, _feedback: FeedbackStack) -> FunctionSpec:
    """Return a function with the handler of another one, because Acme has none in lambdas/."""
    settings = AcmeRequests()
    return FunctionSpec(function="acme-requests", handler="unsubscribe", grants=(), environment=settings)
