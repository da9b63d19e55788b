"""Refusals of commands, and sentences about errors of AWS, which need no terminal."""

from typing import Protocol

from botocore.exceptions import BotoCoreError, ClientError

from mailroom.aws.dynamo_batches import UnprocessedKeys
from mailroom.errors import InvalidSecret, RequestFailed

_UNSIGNED = (
    *("SignatureDoesNotMatch", "InvalidSignatureException"),
    *("RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture"),
)
"""AWS's error codes for a wrong signature, or for a wrong time in the request."""
CLOCK = (
    "AWS refuses the request's signature: this machine's clock may be more than 5 minutes off. Set the clock "
    "by NTP, such as `timedatectl set-ntp true`. If the clock is right, the secret key is wrong."
)
_MISSING = (
    *("ResourceNotFoundException", "NoSuchBucket", "QueueDoesNotExist"),
    "AWS.SimpleQueueService.NonExistentQueue",
)
"""AWS's error codes for a table, function, bucket or queue that does not exist."""
_THROTTLED = (
    "Throttl",
    "TooManyRequests",
    "RequestLimitExceeded",
    "ProvisionedThroughputExceeded",
    "SlowDown",
)
"""Prefixes of AWS's error codes for too many requests."""
_MALFORMED_URLS = ("Invalid endpoint: ", "Invalid IPv6 URL")
"""Prefixes of botocore's error messages about a malformed AWS_ENDPOINT_URL, for which it raises a plain
ValueError."""


RESEND_FAULTS = (RequestFailed, InvalidSecret)
"""Exceptions of requests to Resend, besides botocore's errors: after them, the result is unknown."""


class Refused(Exception):
    """Command that cannot be carried out. The error's text says why, and what to do instead."""


class NotDeployed(Refused):
    """Refusal because a resource is missing that every deployment creates. The operator may have named the
    wrong stage or account."""

    def __init__(
        self, resource: str, remedy: str = "Deploy the stage", place: str = "this account and region"
    ) -> None:
        super().__init__(
            f"There is no {resource} in {place}. {remedy}, or check --stage, the credentials and the region."
        )


def aws_fault_types() -> tuple[type[Exception], ...]:
    """Return the exceptions that are raised if AWS does not respond or refuses a request, or if a command
    refuses. Among ValueErrors, `sentences_of` separates those of botocore from faults of this program."""
    # Imported here, because it takes 50 ms and is needed only after an error.
    from botocore.parsers import ResponseParserError

    return (Refused, ClientError, BotoCoreError, ResponseParserError, UnprocessedKeys, ValueError)


def sentences_of(error: Exception, stage: str) -> list[str]:
    """Return a sentence about an error of `aws_fault_types`, and sentences about what to check. Raises the
    error again if it is a fault of this program."""
    match error:
        case Refused():
            return [f"{error}"]
        case ClientError() if error.response.get("Error", {}).get("Code") in _MISSING:
            part = f"such table, function, bucket or queue of {stage} ({error.operation_name})"
            return [f"{NotDeployed(part)}"]
        case UnprocessedKeys():
            return ["DynamoDB throttled the requests, and did not return all items. Run the command again."]
        case _ if type(error).__name__ == "ResponseParserError":
            return ["The response is not from AWS: check AWS_ENDPOINT_URL, and whether there is a proxy."]
        case ValueError() if not isinstance(error, BotoCoreError):
            if not str(error).startswith(_MALFORMED_URLS):
                raise error
            return [f"{error}. Write AWS_ENDPOINT_URL as a URL, such as http://127.0.0.1:4566."]
    return [f"{error}", *_remedies(error, stage)]


def _remedies(error: Exception, stage: str) -> list[str]:
    code = error.response.get("Error", {}).get("Code", "") if isinstance(error, ClientError) else ""
    if code.startswith(_THROTTLED):
        return ["AWS throttles requests. Try again in a minute."]
    if code.startswith("ExpiredToken"):
        return ["Sign in again, and repeat the command."]
    check = f"Check the credentials, the region, and --stage {stage}."
    if code.startswith("AccessDenied"):
        return ["The credentials do not have this permission. Ask for it if the account is right.", check]
    return [CLOCK, check] if code in _UNSIGNED else [check]


def ended(sentence: str) -> str:
    """Return a sentence with a final full stop, unless it already ends with a punctuation mark."""
    return sentence if sentence.endswith((".", "?", "!")) else f"{sentence}."


class Advance(Protocol):
    """Function that reports progress: the amount done, the total (None if unknown), and the name of the step
    (None if unchanged)."""

    def __call__(self, done: int, total: int | None = None, name: str | None = None) -> None: ...


def percent(part: float) -> str:
    """Format a share as a percentage: 0.0831 as `8.3%`. Shares below 1% have one more digit."""
    return f"{part:.2%}" if 0 < part < 0.01 else f"{part:.1%}"
