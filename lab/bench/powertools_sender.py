"""Baseline with Powertools: a mail sender as in its documentation, with Mailroom's adapter.

It uses BatchProcessor for the partial batch response, and `idempotent_function` to complete a mail at most
once, with the message's id and event type as key. Like Mailroom's sender, it makes two DynamoDB writes for
each mail.
"""

import os
from typing import Any

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.idempotency import (
    DynamoDBPersistenceLayer,
    IdempotencyConfig,
    idempotent_function,
)

from lab.bench.adapter import adapter
from mailroom.channels.mail.contract import Mail
from mailroom.message.message import parse
from mailroom.message.outcome import Sent

processor = BatchProcessor(event_type=EventType.SQS)
config = IdempotencyConfig(event_key_jmespath="[id, event_type]", expires_after_seconds=7_776_000)
layer = DynamoDBPersistenceLayer(table_name=os.environ["IDEMPOTENCY_TABLE"])


@idempotent_function(data_keyword_argument="mail", config=config, persistence_store=layer)  # type: ignore[untyped-decorator]
def send(mail: dict[str, Any]) -> dict[str, str]:
    """Send a mail. A repeated call returns the stored return value instead."""
    outcome = adapter.submit(adapter.prepare(parse(mail, {"mail": Mail})))
    if not isinstance(outcome, Sent):
        raise TypeError(f"not sent: {outcome}")
    return {"provider_id": outcome.provider_id}


def record_handler(record: SQSRecord) -> dict[str, str]:
    result: dict[str, str] = send(mail=record.json_body)
    return result


def handler(event: dict[str, Any], context: Any) -> Any:
    config.register_lambda_context(context)
    return process_partial_response(
        event=event, record_handler=record_handler, processor=processor, context=context
    )
