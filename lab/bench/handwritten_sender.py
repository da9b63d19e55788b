"""Handwritten baseline: a mail sender with the pattern that articles describe, with Mailroom's adapter.

It makes one conditional PutItem before the mail and one UpdateItem after it, and returns a partial batch
response.
"""

import json
import os
import time
from typing import Any

import boto3
from botocore.exceptions import ClientError

from lab.bench.adapter import adapter
from mailroom.channels.mail.contract import Mail
from mailroom.message.message import parse
from mailroom.message.outcome import Sent

dynamodb = boto3.client("dynamodb")
table = os.environ["LEDGER_TABLE"]


def send(mail: dict[str, Any]) -> None:
    """Send a mail, unless another invocation has claimed it."""
    key = {"id": {"S": mail["id"]}, "event_type": {"S": mail["event_type"]}}
    try:
        dynamodb.put_item(
            TableName=table,
            Item={**key, "startedAt": {"N": str(int(time.time() * 1000))}, "status": {"S": "sending"}},
            ConditionExpression="attribute_not_exists(startedAt)",
        )
    except ClientError as error:
        if error.response["Error"]["Code"] == "ConditionalCheckFailedException":
            return
        raise
    outcome = adapter.submit(adapter.prepare(parse(mail, {"mail": Mail})))
    if not isinstance(outcome, Sent):
        raise TypeError(f"not sent: {outcome}")
    dynamodb.update_item(
        TableName=table,
        Key=key,
        UpdateExpression="SET completedAt = :now, #status = :sent, provider_id = :id",
        ConditionExpression="attribute_not_exists(completedAt)",
        ExpressionAttributeNames={"#status": "status"},
        ExpressionAttributeValues={
            ":now": {"N": str(int(time.time() * 1000))},
            ":sent": {"S": "sent"},
            ":id": {"S": outcome.provider_id},
        },
    )


def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    failed = []
    for record in event["Records"]:
        try:
            send(json.loads(record["body"]))
        except Exception:  # noqa: BLE001 - the queue returns the record again
            failed.append({"itemIdentifier": record["messageId"]})
    return {"batchItemFailures": failed}
