"""What the ledger's stream has as consequences: callbacks, and a fax's next attempt."""

import json
from collections.abc import Iterator

from stacks.constructs.grants import Grant
from stacks.constructs.stream import Reading
from stacks.fax import FaxStack
from stacks.mailbox import MailboxStack
from stacks.settings.stage import Settings
from stacks.webhook import WebhookStack

NO_NEWS = ("sending", "scheduled")
"""Statuses that nobody is called back for."""
FAILED = ("failed", "undelivered", "bounced", "complained")
"""Statuses that are counted, whether or not anybody is called back."""


def outcomes(
    settings: Settings, storage: MailboxStack, webhook: WebhookStack, fax: FaxStack | None
) -> Reading:
    """How `outcomes` reads the ledger's stream."""
    queues = [webhook.worker.queue, *([fax.retry.queue] if fax else [])]
    return Reading(
        name="outcomes",
        table=storage.ledger,
        filters=list(_filters(fax)),
        numbers=settings.outcomes,
        grants=[Grant(["sqs:SendMessage"], [queue.queue_arn for queue in queues])],
        environment={
            "WEBHOOK_QUEUE_URL": webhook.worker.queue.queue_url,
            "RETRY_QUEUE_URL": fax.retry.queue.queue_url if fax else "",
            "CHANNELS": json.dumps(sorted({*settings.channels, *(["fax"] if fax else []), "webhook"})),
            **_retries(settings),
        },
    )


def _filters(fax: FaxStack | None) -> Iterator[str]:
    """The ledger's changes that have consequences; Lambda invokes nothing for the others."""
    yield _changes(callback_url=[{"exists": True}], status=[{"anything-but": [*NO_NEWS]}])
    yield _changes(status=[*FAILED])
    if fax:
        yield _changes(event_type=["fax"], status=["retrying"])


def _changes(**attributes: list[object]) -> str:
    image = {name: {"S": patterns} for name, patterns in attributes.items()}
    pattern = {"eventName": ["INSERT", "MODIFY"], "dynamodb": {"NewImage": image}}
    return json.dumps(pattern, separators=(",", ":"))


def _retries(settings: Settings) -> dict[str, str]:
    """When a fax is tried again; without a fax gateway, numbers that nothing is reckoned with."""
    fax = settings.fax
    return {
        "MAX_ATTEMPTS": str(fax.max_attempts if fax else 1),
        "RETRY_DELAY_SECONDS": str(fax.retry_delay_seconds if fax else 0),
        "RETRY_GROWTH": str(fax.retry_growth if fax else 1),
        "RETRY_DELAY_CAP_SECONDS": str(fax.retry_delay_cap_seconds if fax else 0),
    }
