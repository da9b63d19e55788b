"""Events that Lambda passes to a function, and its handling of the response."""

import json
from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from tests.support.unit.shared import MAILBOX, NOW, NOW_MS, REGION


def sqs_event(*bodies: str | Mapping[str, Any], receives: int | Sequence[int] = 1) -> dict[str, Any]:
    """Return the event that Lambda passes to a function for messages of a queue."""
    each = [receives] * len(bodies) if isinstance(receives, int) else receives
    return {"Records": [sqs_record(at, body, each[at]) for at, body in enumerate(bodies)]}


def sqs_record(at: int, body: str | Mapping[str, Any], receives: int = 1) -> dict[str, Any]:
    return {
        "messageId": f"r-{at}",
        "receiptHandle": f"receipt-{at}",
        "body": body if isinstance(body, str) else json.dumps(body),
        "attributes": {
            "ApproximateReceiveCount": str(receives),
            "SentTimestamp": str(NOW_MS),
            "SenderId": "AROAEXAMPLE:mailroom-test-dispatch",
            "ApproximateFirstReceiveTimestamp": str(NOW_MS),
        },
        "messageAttributes": {},
        "md5OfBody": "0" * 32,
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:{REGION}:123456789012:mailroom-test-mail",
        "awsRegion": REGION,
    }


def stream_event(*images: Mapping[str, Any], name: str = "INSERT") -> dict[str, Any]:
    """Return the event that Lambda passes to a function for records of the mailbox's stream, numbered from
    100."""
    records = [
        {
            "eventID": f"e-{at}",
            "eventName": name,
            "eventVersion": "1.1",
            "eventSource": "aws:dynamodb",
            "awsRegion": REGION,
            "eventSourceARN": f"arn:aws:dynamodb:{REGION}:123456789012:table/{MAILBOX}/stream/2026",
            "dynamodb": {
                "ApproximateCreationDateTime": NOW,
                "Keys": {key: each[key] for key in ("id", "event_type") if key in each},
                "NewImage": dict(each),
                "SequenceNumber": str(100 + at),
                "SizeBytes": 200,
                "StreamViewType": "NEW_IMAGE",
            },
        }
        for at, each in enumerate(images)
    ]
    return {"Records": records}


def failures(reply: Mapping[str, Any]) -> list[str]:
    """The records that a partial batch response sends back."""
    return [each["itemIdentifier"] for each in reply["batchItemFailures"]]


def plenty() -> int:
    """A function's time left, in milliseconds: enough."""
    return 60_000


def lambda_context(milliseconds: int = 60_000) -> Any:
    """Context that Lambda passes to a handler."""
    return SimpleNamespace(
        function_name="mailroom-test-function",
        memory_limit_in_mb=128,
        invoked_function_arn=f"arn:aws:lambda:{REGION}:123456789012:function:mailroom-test-function",
        aws_request_id="request-1",
        get_remaining_time_in_millis=lambda: milliseconds,
    )


def lines_about(lines: Iterable[Mapping[str, Any]], text: str) -> list[Mapping[str, Any]]:
    """The log lines whose message starts with `text`."""
    return [line for line in lines if str(line["message"]).startswith(text)]
