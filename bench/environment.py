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
    "DELAYED_ROUTES": "{}",
    "CALLBACK_SCHEMES": '["https"]',
    "CALLBACK_PORTS": "[443]",
    "SCHEDULE_GROUP": "mailroom",
    "SCHEDULE_ROLE_ARN": "arn:aws:iam::123456789012:role/schedules",
    "SCHEDULE_DEAD_LETTER_ARN": "arn:aws:sqs:us-east-1:123456789012:scheduled-dlq",
    "SCHEDULE_TARGET_ARN": "arn:aws:sqs:us-east-1:123456789012:scheduled",
    "FAX_PROVIDER": "signalwire",
    "FAX_SECRET_ARN": "arn:aws:secretsmanager:us-east-1:123456789012:secret:fax",
    "FAX_BASE_URL": "https://example.signalwire.com",
    "FAX_SENDERS": '["+12025550123"]',
    "FAX_CONNECTION_ID": "",
    "FAX_TTL_MINUTES": "5",
    "FAX_QUALITY": "fine",
    "MEDIA_SECONDS": "3600",
    "POLL_SECONDS": "5",
    "LONGEST_FAX_SECONDS": "7200",
    "MAX_ATTEMPTS": "20",
    "LAST_SUBMIT_RECEIVE": "40",
    "CLOCK_SKEW_SECONDS": "5",
    "FAX_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/123456789012/fax.fifo",
    "WEBHOOK_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/123456789012/webhook",
    "RETRY_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/123456789012/fax-retry",
    "RETRY_DELAY_SECONDS": "600",
    "RETRY_GROWTH": "1",
    "RETRY_DELAY_CAP_SECONDS": "3600",
    "SIGNING_SECRET_ARN": "arn:aws:secretsmanager:us-east-1:123456789012:secret:signing",
    "SIGNING_OVERLAP_SECONDS": "86400",
    "DELAYS": "[5, 15]",
    "RETRY_AFTER_CAP_SECONDS": "3600",
    "ALLOWED_NETWORKS": "[]",
    "ALLOWED_SCHEMES": '["https"]',
    "ALLOWED_PORTS": "[443]",
}


def clean() -> dict[str, str]:
    """This process's environment, with the functions' in place of whatever AWS settings it has."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return kept | FUNCTION
