"""Runs the functions without AWS: their environment, the events that they get, and clients that respond at
once."""

import json
import os
import subprocess
import sys
from collections import Counter
from types import SimpleNamespace
from typing import Any

from botocore.awsrequest import AWSResponse

from lab import REPOSITORY


def queue(name: str) -> str:
    return f"https://sqs.us-east-1.amazonaws.com/123456789012/{name}"


def _arn(service: str, name: str) -> str:
    return f"arn:aws:{service}:us-east-1:123456789012:{name}"


_TABLES = (
    *("ledger", "idempotency", "suppressions", "preferences", "mailbox", "budgets"),
    "contents",
)
_QUEUES = ("audience", "feedback", "fax", "webhook", "retry")
_SECRETS = ("unsubscribe", "resend", "twilio", "fax", "signing")
_NUMBERS = (
    *("BACKOFF_SECONDS", "BACKOFF_CAP_SECONDS", "MISCONFIGURED_SECONDS"),
    *("RETRY_DELAY_SECONDS", "RETRY_AFTER_CAP_SECONDS"),
    *("MEDIA_SECONDS", "CLOCK_SKEW_SECONDS", "SIGNING_OVERLAP_SECONDS", "FAX_TTL_MINUTES", "MAX_SEGMENTS"),
    *("MAX_ATTEMPTS", "LAST_SUBMIT_RECEIVE"),
)
"""Numeric variables that affect none of the figures."""
FUNCTION = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "us-east-1",
    "POWERTOOLS_SERVICE_NAME": "bench",
    "POWERTOOLS_METRICS_NAMESPACE": "Mailroom",
    "POWERTOOLS_LOG_LEVEL": "INFO",
    "STAGE": "bench",
    **{f"{name.upper().replace('-', '_')}_TABLE": name for name in _TABLES},
    **{f"{name.upper()}_QUEUE_URL": queue(name) for name in _QUEUES},
    **{f"{name.upper()}_SECRET_ARN": _arn("secretsmanager", f"secret:{name}") for name in _SECRETS},
    **dict.fromkeys(_NUMBERS, "20"),
    "RUNS_TABLE": "campaign-runs",
    "SEARCH_TABLE": "search",
    "SEARCH_KEY_NAME": "search-key",
    "LEDGER_TTL_SECONDS": "7776000",
    **dict.fromkeys(("CALLBACK_SCHEMES", "ALLOWED_SCHEMES"), '["https"]'),
    **dict.fromkeys(("CALLBACK_PORTS", "ALLOWED_PORTS"), "[443]"),
    **dict.fromkeys(("ALLOWED_NETWORKS", "TOPICS"), "[]"),
    "PAYLOAD_BUCKET": "payloads",
    "CHANNEL": "mail",
    "QUEUE_URL": queue("mail"),
    "LEASE_SECONDS": "120",
    "SUBMIT_SECONDS": "10",
    "RECORD_SECONDS": "5",
    "PACE_SECONDS": "0",
    "ON_UNKNOWN": "resend",
    "RESEND_DELAYS": "[0, 1800, 7200]",
    "MAIL_SENDERS": '["Mailroom <mailroom@example.com>"]',
    "CONFIGURATION_SET": "mailroom",
    "MAX_ATTACHMENT_BYTES": "7000000",
    "PER_DAY": '[["0001-01-01", 10000000]]',
    "RESERVE": "0.1",
    "TEMPLATES": "templates/mail",
    "LANES": '{"mail": ["normal", "bulk"]}',
    "UNSUBSCRIBE_URL": "https://api.example.com/unsubscribe",
    "FEEDBACK_TOPICS": json.dumps([_arn("sns", "feedback")]),
    "DEFAULT_REGION": "US",
    "RESEND_BASE_URL": "https://api.resend.com",
    "SMS_PROVIDER": "twilio",
    "SMS_BASE_URL": "https://api.twilio.com",
    "SMS_SENDER": "+12025550123",
    "PUBLIC_URL": "https://api.example.com",
    "PLATFORM_APPLICATIONS": json.dumps({"phones": _arn("sns", "app/GCM/phones")}),
    "DEAD_LETTER_QUEUES": json.dumps({"mail-dlq": queue("mail-dlq")}),
    "ROUTES": json.dumps({"mail": {"normal": queue("mail")}}),
    "DELAYED_ROUTES": "{}",
    "QUEUES": json.dumps({"mail": queue("mail-bulk")}),
    "CHANNELS": '["mail"]',
    "PAYLOAD_TTL_SECONDS": "7776000",
    "LINES": '{"mail": {"per_second": 7}}',
    "FAX_PROVIDER": "signalwire",
    "FAX_BASE_URL": "https://example.signalwire.com",
    "FAX_SENDERS": '["+12025550123"]',
    "FAX_CONNECTION_ID": "",
    "FAX_QUALITY": "fine",
    "POLL_SECONDS": "5",
    "LONGEST_FAX_SECONDS": "7200",
    "DELAYS": "[5, 15]",
}
"""Environment variables of all functions together, as the stacks set them for a stage on AWS. The path of
templates is relative to the bundle, and to REPOSITORY."""
ANSWERS = {
    "SendEmail": b'{"MessageId": "0100019abcdef012-00000000-0000-0000-0000-000000000000-000000"}',
    "SendMessageBatch": b'{"Successful": [], "Failed": []}',
    "BatchExecuteStatement": b'{"Responses": [{}, {}, {}, {}, {}, {}, {}, {}, {}, {}]}',
    "BatchGetItem": b'{"Responses": {}, "UnprocessedKeys": {}}',
}


def clean(**more: str) -> dict[str, str]:
    """Return the environment of this process, with the functions' variables instead of its AWS settings."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return inherited | FUNCTION | more


def in_a_process(module: str, *arguments: str, **variables: str) -> Any:
    """Run a module in a new process with a function's environment, and return the figures that it writes by
    `report`. Raises CalledProcessError."""
    command = [sys.executable, "-m", module, *arguments]
    environment = clean(**variables)
    done = subprocess.run(
        command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(done.stderr.splitlines()[-1])


def report(figures: Any) -> None:
    """Write figures to standard error, because the functions log to standard output."""
    print(json.dumps(figures), file=sys.stderr)


def context() -> Any:
    """Return Lambda's context object of an invocation that has just begun."""
    return SimpleNamespace(
        aws_request_id="00000000-0000-0000-0000-000000000000",
        function_name="bench",
        memory_limit_in_mb=256,
        invoked_function_arn=_arn("lambda", "function:bench"),
        get_remaining_time_in_millis=lambda: 60_000,
    )


def item(number: int) -> dict[str, str]:
    """Return the mailbox item of the smallest possible mail."""
    person = {"email": f"reader-{number}@example.com", "first_name": "Ada", "last_name": "Lovelace"}
    return {"id": f"newsletter-{number}", "event_type": "mail", **person}


def records(*bodies: str) -> dict[str, Any]:
    """Return the event of a batch of queue messages, as Lambda passes it to a function."""
    return {
        "Records": [
            {
                "messageId": f"message-{number}",
                "receiptHandle": f"receipt-{number}",
                "body": body,
                "attributes": {"ApproximateReceiveCount": "1", "SentTimestamp": "1795251600000"},
                "messageAttributes": {},
                "eventSourceARN": _arn("sqs", "mail"),
            }
            for number, body in enumerate(bodies)
        ]
    }


def queue_batch(first: int, size: int = 10) -> dict[str, Any]:
    return records(*(json.dumps(item(number)) for number in range(first, first + size)))


def stream_batch(first: int) -> dict[str, Any]:
    """Return the event of a DynamoDB stream with 100 new items."""
    return {"Records": [_inserted(number) for number in range(first, first + 100)]}


def _inserted(number: int) -> dict[str, Any]:
    image = {name: {"S": value} for name, value in item(number).items()}
    change = {"SequenceNumber": str(number), "NewImage": image, "StreamViewType": "NEW_IMAGE"}
    return {"eventName": "INSERT", "eventSource": "aws:dynamodb", "dynamodb": change}


class Methods:
    """A client whose methods return at once, so that only the work of the caller is measured."""

    def update_item(self, **_request: Any) -> dict[str, Any]:
        """Return the response to a write of the ledger."""
        return {}

    put_item = update_item

    def batch_execute_statement(self, *, Statements: list[Any]) -> dict[str, Any]:  # noqa: N803 - the name in boto3
        """Return the response to inserts of the ledger's claims, which all succeed."""
        return {"Responses": [{} for _ in Statements]}

    def batch_get_item(self, **_request: Any) -> dict[str, Any]:
        """Return an empty suppression list."""
        return {"Responses": {}}

    def send_email(self, **_request: Any) -> dict[str, str]:
        """Return SES's response to an accepted mail."""
        return {"MessageId": "0100019abcdef012"}


def answer_at_once(*clients: Any, calls: Counter[str] | None = None) -> None:
    """Disconnect clients from the network: botocore builds, signs and parses, but sends nothing. `calls`
    counts the calls by operation."""

    def respond(request: Any, event_name: str, **_: Any) -> Any:
        operation = event_name.rpartition(".")[2]
        if calls is not None:
            calls[operation] += 1
        headers: Any = {"content-type": "application/json", "x-amzn-requestid": "bench"}
        answer: Any = AWSResponse(request.url, 200, headers, None)
        answer._content = ANSWERS.get(operation, b"{}")
        return answer

    for client in clients:
        client.meta.events.register("before-send.*", respond)


def create_table(dynamodb: Any, name: str, *keys: str, **more: Any) -> None:
    """Create a table whose keys `keys` are strings, the partition key first."""
    kinds = zip(keys, ("HASH", "RANGE"), strict=False)
    dynamodb.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": key, "KeyType": kind} for key, kind in kinds],
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in keys],
        **more,
    )
