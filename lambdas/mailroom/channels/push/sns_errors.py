"""What the refusals of Amazon SNS mean for a push notification, and whose fault they are.

The codes are of the service's model; the sentences of InvalidParameter tell what its code does not:
https://docs.aws.amazon.com/sns/latest/dg/mobile-push-api-error.html and mobile-platform-endpoint.html.
"""

import re

from botocore.exceptions import ClientError

from mailroom.channels.provider import Refusal, code_of, reason_of
from mailroom.message.outcome import Misconfigured, Rejected

_EXISTS = re.compile(r"Endpoint (arn:aws[a-z-]*:sns:\S+) already exists with the same [Tt]oken")
_INVALID = {"InvalidParameter", "InvalidParameterValue", "ParameterValueInvalid", "Validation"}
_OUR_PARAMETERS = ("TargetArn", "TopicArn", "PlatformApplicationArn")


def existing_endpoint(error: ClientError) -> str | None:
    """The endpoint that a token has already, where its other attributes are not ours to change."""
    found = _EXISTS.search(error.response["Error"].get("Message", ""))
    return found[1] if found else None


def refusal_to_publish(error: ClientError, *, to_endpoint: bool) -> Refusal:
    """What an answer to `publish` means. An endpoint that is disabled or deleted stays so until its app
    registers again: nothing later reaches it either."""
    code, text = code_of(error), error.response["Error"].get("Message", "")
    if code == "EndpointDisabled" or (code == "NotFound" and to_endpoint) or "No endpoint found" in text:
        return Rejected(reason_of(error), gone=True)
    return _refusal(error)


def refusal_to_register(error: ClientError) -> Refusal:
    """What an answer to `create_platform_endpoint` means: that of a token which is none, or ours."""
    return _refusal(error)


def _refusal(error: ClientError) -> Refusal:
    own = code_of(error) in _INVALID and not any(
        name in error.response["Error"].get("Message", "") for name in _OUR_PARAMETERS
    )
    return Rejected(reason_of(error)) if own else Misconfigured(reason_of(error))
