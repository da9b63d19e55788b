"""Worker that polls a queue like Lambda, and calls a function's handler with each batch."""

import sys
from importlib import import_module
from os import environ
from typing import Any, cast

import boto3

from lab.bench.functions import context

WAIT_SECONDS = 5
FUNCTION_SECONDS = 10
"""Time-out of the function, which is shorter than the queue's visibility timeout."""
ATTRIBUTES = ("messageId", "receiptHandle", "body", "attributes")


def main(module: str) -> None:
    handler, sqs = import_module(module).handler, cast(Any, boto3.client("sqs"))
    queue = {"QueueUrl": environ["QUEUE_URL"]}
    while True:
        messages: list[dict[str, Any]] = sqs.receive_message(
            **queue,
            MaxNumberOfMessages=10,
            WaitTimeSeconds=WAIT_SECONDS,
            MessageSystemAttributeNames=["All"],
        ).get("Messages", [])
        if not messages:
            continue
        invocation = context()
        invocation.get_remaining_time_in_millis = lambda: FUNCTION_SECONDS * 1000
        failures = handler({"Records": [*map(_record, messages)]}, invocation)["batchItemFailures"]
        failed = {failure["itemIdentifier"] for failure in failures}
        done = [
            {"Id": message["MessageId"], "ReceiptHandle": message["ReceiptHandle"]}
            for message in messages
            if message["MessageId"] not in failed
        ]
        if done:
            sqs.delete_message_batch(**queue, Entries=done)


def _record(message: dict[str, Any]) -> dict[str, Any]:
    record = {name: message[name[0].upper() + name[1:]] for name in ATTRIBUTES}
    return {**record, "messageAttributes": {}, "eventSourceARN": "arn:aws:sqs:us-east-1:000000000000:mail"}


if __name__ == "__main__":
    main(sys.argv[1])
