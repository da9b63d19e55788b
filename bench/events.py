"""Events as Lambda hands them to the functions."""

import json
from typing import Any


class Context:
    """Lambda's context object, as far as the functions look at it."""

    aws_request_id = "00000000-0000-0000-0000-000000000000"
    function_name = "bench"
    memory_limit_in_mb = 256
    invoked_function_arn = "arn:aws:lambda:us-east-1:123456789012:function:bench"

    def get_remaining_time_in_millis(self) -> int:
        """A function that has just started."""
        return 60_000


def item(number: int) -> dict[str, str]:
    """The smallest mail there is."""
    about = {"email": f"reader-{number}@example.com", "first_name": "Ada", "last_name": "Lovelace"}
    return {"id": f"newsletter-{number}", "event_type": "mail", **about}


def queue_batch(first: int, size: int = 10) -> dict[str, Any]:
    """An SQS batch of mails."""
    return {"Records": [_record(number) for number in range(first, first + size)]}


def stream_batch(first: int, size: int = 100) -> dict[str, Any]:
    """A DynamoDB stream batch of new items."""
    return {"Records": [_inserted(number) for number in range(first, first + size)]}


def _record(number: int) -> dict[str, Any]:
    return {
        "messageId": f"message-{number}",
        "receiptHandle": f"receipt-{number}",
        "body": json.dumps(item(number)),
        "attributes": {"ApproximateReceiveCount": "1", "SentTimestamp": "1795251600000"},
        "messageAttributes": {},
        "md5OfBody": "",
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:us-east-1:123456789012:mail",
        "awsRegion": "us-east-1",
    }


def _inserted(number: int) -> dict[str, Any]:
    image = {name: {"S": value} for name, value in item(number).items()}
    change = {"SequenceNumber": str(number), "NewImage": image, "StreamViewType": "NEW_IMAGE"}
    return {"eventName": "INSERT", "eventSource": "aws:dynamodb", "dynamodb": change}
