"""What SES's refusals mean."""

from botocore.exceptions import ClientError

from mailroom.message.outcome import Misconfigured, Outcome, Rejected, Retry

_THROTTLED = {"TooManyRequestsException", "ThrottlingException", "Throttling"}
_QUOTA_SECONDS = 900
"""The daily quota opens again by the hour: a long wait, or it burns receives."""
_OURS = {
    "AccountSuspendedException",
    "SendingPausedException",
    "MailFromDomainNotVerifiedException",
    "NotFoundException",  # the configuration set
}
_CREDENTIALS = (
    "AccessDenied",
    "UnrecognizedClient",
    "InvalidClientToken",
    "Expired",
    "Signature",
    "Incomplete",
)


def outcome_of(error: ClientError) -> Outcome:
    """What SES's answer means. All of these prove that nothing was sent."""
    code, text = error.response["Error"]["Code"], error.response["Error"].get("Message", "")
    reason = f"{code}: {text}"
    if code == "LimitExceededException" or "daily message quota" in text.lower():
        return Retry(reason, after=_QUOTA_SECONDS)
    if code in _THROTTLED or error.response["ResponseMetadata"]["HTTPStatusCode"] == 429:
        return Retry(reason)
    if code in _OURS or code.startswith(_CREDENTIALS):
        return Misconfigured(reason)
    if code in {"MessageRejected", "BadRequestException"}:
        # In the sandbox, and for a sender that nobody verified, SES says so in words alone.
        return Misconfigured(reason) if "not verified" in text else Rejected(reason)
    return Misconfigured(reason)
