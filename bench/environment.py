"""What the functions' stacks would put into their environment."""

import os

from bench import REPOSITORY

FUNCTION = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "us-east-1",
    "POWERTOOLS_SERVICE_NAME": "bench",
    "POWERTOOLS_METRICS_NAMESPACE": "Mailroom",
    "POWERTOOLS_LOG_LEVEL": "INFO",
    "LEDGER_TABLE": "ledger",
    "IDEMPOTENCY_TABLE": "idempotency",
    "LEDGER_TTL_SECONDS": "7776000",
    "PAYLOAD_BUCKET": "payloads",
    "CHANNEL": "mail",
    "QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/123456789012/mail",
    "LEASE_SECONDS": "120",
    "PACE_SECONDS": "0",
    "ON_UNKNOWN": "resend",
    "BACKOFF_SECONDS": "5",
    "BACKOFF_CAP_SECONDS": "300",
    "MISCONFIGURED_SECONDS": "20",
    "SUBMIT_SECONDS": "10",
    "RECORD_SECONDS": "5",
    "MAIL_SENDERS": '["Mailroom <mailroom@example.com>"]',
    "CONFIGURATION_SET": "mailroom",
    "MAX_ATTACHMENT_BYTES": "7000000",
    "TEMPLATES": str(REPOSITORY / "templates" / "mail"),
    "MAILBOX_TABLE": "mailbox",
    "ROUTES": '{"mail": {"normal": "https://sqs.us-east-1.amazonaws.com/123456789012/mail"}}',
    "SCHEDULE_GROUP": "mailroom",
    "SCHEDULE_ROLE_ARN": "arn:aws:iam::123456789012:role/schedules",
    "SCHEDULE_DEAD_LETTER_ARN": "arn:aws:sqs:us-east-1:123456789012:scheduled-dlq",
    "SCHEDULE_TARGET_ARN": "arn:aws:sqs:us-east-1:123456789012:scheduled",
}


def clean() -> dict[str, str]:
    """This process's environment, with the functions' in place of whatever AWS settings it has."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return kept | FUNCTION
