"""What sending by SES needs."""

import json
from email.utils import parseaddr

from aws_cdk import Stack

from stacks.constructs.grants import Grant
from stacks.providers.around import Around
from stacks.providers.needs import Needs
from stacks.settings.stage import Settings


def needs(stack: Stack, around: Around) -> Needs:
    """The senders' addresses, the configuration set, the links for opting out, and the templates."""
    settings = around.settings
    return Needs(
        grants=[_send_email(stack, settings), around.find_unwilling(), around.api.secret.read()],
        environment={
            **around.unwilling(),
            "MAIL_SENDERS": json.dumps(settings.mail.senders),
            "CONFIGURATION_SET": settings.configuration_set,
            "UNSUBSCRIBE_URL": around.api.unsubscribe_url,
            "UNSUBSCRIBE_SECRET_ARN": around.api.secret.secret_arn,
            "MAX_ATTACHMENT_BYTES": str(settings.mail.max_attachment_bytes),
        },
        templates="mail",
    )


def _send_email(stack: Stack, settings: Settings) -> Grant:
    return Grant(
        # The call is SendEmail. As what SES authorizes one with headers or attachments is documented nowhere.
        ["ses:SendEmail", "ses:SendRawEmail"],
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
