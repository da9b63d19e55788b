"""The list of AWS prices in US dollars, and the quantities for which AWS charges."""

DATED = "us-east-1 list prices of 2026-11, arm64"

WRITE_UNIT = 0.625e-6
READ_UNIT = 0.125e-6
SQS_REQUEST = 0.40e-6
SQS_FIFO_REQUEST = 0.50e-6
LAMBDA_REQUEST = 0.20e-6
LAMBDA_GB_SECOND = 0.0000133334
SNS_PUBLISH = 0.50e-6
BUS_EVENT = 1.00e-6
HTTP_API_REQUEST = 1.00e-6
"""Prices of one request, event, DynamoDB unit or GB-second of a function. DynamoDB's units are on demand, of
up to 1 KB written and 4 KB read."""

TABLE_GB_MONTH = 0.25
RECOVERY_GB_MONTH = 0.20
LOGGED_GB = 0.50
"""Prices of a GB: stored in a table for a month, stored in its backups for a month, and written to logs."""

ALARM = 0.10
CUSTOM_METRIC = 0.30
DASHBOARD = 3.00
KEY = 1.00
SECRET = 0.40
"""Prices of a month. An alarm costs its price once for each of its metrics."""
FREE_ALARMS, FREE_METRICS, FREE_DASHBOARDS, FREE_SQS_REQUESTS = 10, 10, 3, 1_000_000
"""Numbers that are always free in an account: metrics of alarms, custom metrics, dashboards with up to 50
metrics, and requests to SQS a month: https://aws.amazon.com/free/ and https://aws.amazon.com/cloudwatch/pricing/,
read on 2026-11-30."""
KEY_ROTATIONS = 2
"""Number of rotations of a key that each add its monthly price once more; later rotations are free:
https://aws.amazon.com/kms/pricing/."""

LOG_BYTES = 1_000
"""Assumed size of the log of one invocation: three lines of Lambda, and one of metrics."""
SENT_AT_ONCE = 10
"""Number of messages that functions send to a queue with one request."""


def lambda_time(seconds: float, memory_mb: float) -> float:
    """Return the price of a function's time."""
    return seconds * memory_mb / 1024 * LAMBDA_GB_SECOND


def invocation_part(seconds: float, memory_mb: float, batch: int = 1) -> float:
    """Return the price of one record in a function: `seconds` of its time, and a part of the invocation and
    of its log, which `batch` records share."""
    return lambda_time(seconds, memory_mb) + (LAMBDA_REQUEST + LOG_BYTES / 1e9 * LOGGED_GB) / batch


def queue_part(batch: int, request: float = SQS_REQUEST, sent_at_once: int = SENT_AT_ONCE) -> float:
    """Return the price of one message in a queue: a part of the requests that send, receive and delete it.
    `batch` messages share the last two requests."""
    return (1 / sent_at_once + 2 / batch) * request
