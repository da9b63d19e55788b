"""Permissions and variables of a sender by Acme."""

from mailroom_stacks.channels import ChannelsStack, Needs
from tests.support.acme.provider.sender import AcmeSender


def needs(stack: ChannelsStack, name: str) -> Needs:
    secret, section = stack.feedback.secrets[name], stack.settings.sms_by(name)
    fields = {"acme_url": section.url, "acme_secret_arn": secret.secret_arn}
    return Needs([secret.read()], AcmeSender, fields)
