"""What AWS's answers to a submit prove, whatever the service."""

from collections.abc import Callable
from typing import TypeVar

from botocore.exceptions import ClientError, ConnectTimeoutError, EndpointConnectionError, NoCredentialsError

from mailroom.message.outcome import Misconfigured, Rejected, Retry
from mailroom.telemetry import redact

T = TypeVar("T")
Refusal = Retry | Rejected | Misconfigured
"""Proved not sent."""

_THROTTLED = ("Throttl", "TooManyRequests", "RequestLimitExceeded", "SlowDown")
_CREDENTIALS = (
    *("AccessDenied", "UnrecognizedClient", "InvalidClientToken", "Expired", "Signature", "Incomplete"),
    *("MissingAuthentication", "OptInRequired", "AuthFailure", "NotAuthorized"),
)


def asked(service: str, call: Callable[[], T], refusal: Callable[[ClientError], Refusal]) -> T | Refusal:
    """What a call answers, or what its refusal means, which `refusal` says of those that are the service's
    own. A 5xx answer or none at all raises: then nobody knows."""
    try:
        return call()
    except ClientError as error:
        return _common(error) or refusal(error)
    except NoCredentialsError as error:
        return Misconfigured(f"{service}: {error}")
    except (EndpointConnectionError, ConnectTimeoutError) as error:
        return Retry(f"{service} cannot be reached: {type(error).__name__}")  # so nothing went out


def code_of(error: ClientError) -> str:
    """The error's name, without the ending that some of a service's protocols leave out."""
    return error.response["Error"]["Code"].removesuffix("Exception")


def reason_of(error: ClientError) -> str:
    """A sentence for the ledger and the log."""
    return f"{code_of(error)}: {redact(error.response['Error'].get('Message', ''))}"


def _common(error: ClientError) -> Refusal | None:
    """Throttling and credentials are the same everywhere. Raises what proves nothing."""
    status = error.response["ResponseMetadata"]["HTTPStatusCode"]
    if status >= 500:
        raise error
    code = code_of(error)
    if status == 429 or code.removeprefix("KMS").startswith(_THROTTLED):
        return Retry(reason_of(error))
    return Misconfigured(reason_of(error)) if code.startswith(_CREDENTIALS) else None
