"""The functions behind the HTTP API: what each may do, and what it is told."""

import json

from aws_cdk import Stack
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from stacks.constructs.bucket import bucket_name
from stacks.constructs.function import HandlerFunction
from stacks.constructs.grants import Grant
from stacks.constructs.secret import Secret
from stacks.feedback import FeedbackStack
from stacks.mailbox import MailboxStack
from stacks.settings.api import Api
from stacks.settings.channels import OWN_SECTIONS
from stacks.settings.queues import DAY
from stacks.settings.stage import Settings

OVERSIZE = "oversize"
"""Below it in the payload bucket lies what producers handed in that is too large for an item."""
TOLD = "Requests end in an error: whoever calls is told, and may call again."
TWILIO_GIVES_UP = "Twilio repeats a status callback for seconds only."


def messages_api(
    stack: Stack, settings: Settings, storage: MailboxStack, public_url: str
) -> lambda_.Function:
    """Takes messages into the mailbox, says what became of them, and takes back what waits."""
    mailbox, ledger = storage.mailbox.table_arn, storage.ledger.table_arn
    bucket = stack.format_arn(service="s3", region="", account="", resource=bucket_name(settings, "payloads"))
    scope = Construct(stack, "MessagesApi")
    return HandlerFunction(
        scope,
        settings,
        name="messages-api",
        handler="messages_api",
        limits=settings.api.messages,
        grants=[
            Grant(["dynamodb:PutItem"], [mailbox]),
            Grant(["dynamodb:GetItem", "dynamodb:Query"], [mailbox, ledger]),
            # Taking a message back is a status.
            Grant(["dynamodb:UpdateItem"], [ledger]),
            Grant(
                ["s3:PutObject"],
                [f"{bucket}/{OVERSIZE}/*"],
                wildcard="What is too large for an item is named by a hash of its content.",
            ),
        ],
        environment={
            **storage.shared_environment,
            **storage.mailbox_environment,
            "PAYLOAD_TTL_SECONDS": str(settings.retention.payload_days * DAY),
            "LANES": json.dumps(lanes(settings)),
            "CALLBACK_SCHEMES": json.dumps(settings.webhook.allowed_schemes),
            "CALLBACK_PORTS": json.dumps(settings.webhook.allowed_ports),
            "DEFAULT_REGION": settings.default_region,
            "PUBLIC_URL": public_url,
            **_callers(settings.api),
        },
        remedy=TOLD,
    ).resource


def _callers(api: Api) -> dict[str, str]:
    """Who calls: what the function has to know of them."""
    jwt = api.jwt
    return {
        "JWT_ISSUER": jwt.issuer if jwt else "",
        "JWT_SCOPES": jwt.scopes.model_dump_json() if jwt and jwt.scopes else "{}",
        "CALLER_CLAIM": jwt.caller_claim if jwt else "",
        "PAYLOAD_PREFIXES": json.dumps(api.payload_prefixes),
    }


def lanes(settings: Settings) -> dict[str, list[str]]:
    """The lanes of each channel that a message may name."""
    rows = {event_type: [*map(str, channel.lanes)] for event_type, channel in settings.channels.items()}
    own = {name: ["normal"] for name in OWN_SECTIONS if getattr(settings, name) is not None}
    return {**rows, **own}


def unsubscribe(stack: Stack, settings: Settings, storage: MailboxStack, secret: Secret) -> lambda_.Function:
    """Lets recipients opt out of a topic, and in again."""
    scope = Construct(stack, "Unsubscribe")
    return HandlerFunction(
        scope,
        settings,
        name="unsubscribe",
        handler="unsubscribe",
        limits=settings.api.unsubscribe,
        grants=[
            Grant(["dynamodb:GetItem", "dynamodb:UpdateItem"], [storage.preferences.table_arn]),
            secret.read(),
        ],
        environment={
            "PREFERENCES_TABLE": storage.preferences.table_name,
            "UNSUBSCRIBE_SECRET_ARN": secret.secret_arn,
        },
        remedy=TOLD,
    ).resource


def twilio_callbacks(
    stack: Stack, settings: Settings, feedback: FeedbackStack, secret: Secret, public_url: str
) -> lambda_.Function:
    """Checks what Twilio calls and puts it on the feedback queue."""
    queue = feedback.worker.queue
    return HandlerFunction(
        Construct(stack, "TwilioCallbacks"),
        settings,
        name="twilio-callbacks",
        handler="twilio_callbacks",
        limits=settings.api,
        grants=[secret.read(), Grant(["sqs:SendMessage"], [queue.queue_arn])],
        environment={
            "TWILIO_SECRET_ARN": secret.secret_arn,
            "PUBLIC_URL": public_url,
            "FEEDBACK_QUEUE_URL": queue.queue_url,
        },
        remedy=TWILIO_GIVES_UP,
    ).resource
