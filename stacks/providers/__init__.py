"""What a channel's sender needs for its provider, beside its queue, the ledger and the payloads."""

from aws_cdk import Stack

from stacks.providers.mail import mail
from stacks.providers.needs import Around, Needs
from stacks.providers.push import push
from stacks.providers.sms import sms

__all__ = ["Around", "Needs", "needs_of"]

BY_EVENT_TYPE = {"mail": mail, "sms": sms, "push": push}


def needs_of(event_type: str, stack: Stack, around: Around) -> Needs:
    """The needs of a channel; none where its provider is reached with what every sender has."""
    needed = BY_EVENT_TYPE.get(event_type)
    return needed(stack, around) if needed else Needs()
