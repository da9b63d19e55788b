"""What a channel's sender needs for its provider, beside its queue and the ledger."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import parseaddr

from aws_cdk import Stack

from stacks.constructs.grants import Grant
from stacks.senders import read_payloads
from stacks.settings import Settings


@dataclass(frozen=True)
class Needs:
    """Grants, environment, and whether the templates go into the bundle."""

    grants: Sequence[Grant] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    templates: bool = False


def needs_of(event_type: str, stack: Stack, settings: Settings) -> Needs:
    """The needs of a channel; none where its provider is reached with what every sender has."""
    return _mail(stack, settings) if event_type == "mail" else Needs()


def _mail(stack: Stack, settings: Settings) -> Needs:
    return Needs(
        grants=[_send_email(stack, settings), *read_payloads(stack, settings)],
        environment={
            "MAIL_SENDERS": json.dumps(settings.mail.senders),
            "CONFIGURATION_SET": settings.configuration_set,
            "MAX_ATTACHMENT_BYTES": str(settings.mail.max_attachment_bytes),
        },
        templates=True,
    )


def _send_email(stack: Stack, settings: Settings) -> Grant:
    return Grant(
        ["ses:SendEmail"],
        [
            stack.format_arn(service="ses", resource="identity", resource_name="*"),
            stack.format_arn(
                service="ses", resource="configuration-set", resource_name=settings.configuration_set
            ),
        ],
        conditions={
            "StringEqualsIgnoreCase": {
                "ses:FromAddress": [parseaddr(sender)[1] for sender in settings.mail.senders]
            }
        },
        wildcard="SES checks the identity that covers the sender (address, domain or a parent domain) and, "
        "in its sandbox, the recipient's as well; the condition holds the sender to the stage's own.",
    )
