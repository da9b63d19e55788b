"""What the refusals of AWS End User Messaging say, and whose fault they are.

The reasons are those of the service's own model (`ConflictExceptionReason` and its like).
"""

from typing import Any, cast

from botocore.exceptions import ClientError

from mailroom.channels.provider import Refusal, code_of, reason_of
from mailroom.message.outcome import Misconfigured, Rejected
from mailroom.redaction import discreet

_NOT_TO_THAT_NUMBER = {
    "DESTINATION_PHONE_NUMBER_OPTED_OUT",
    # A list of ours that says whom not to send to: what it blocks is meant to be.
    "DESTINATION_COUNTRY_BLOCKED_BY_PROTECT_CONFIGURATION",
    "DESTINATION_PHONE_NUMBER_BLOCKED_BY_PROTECT_NUMBER_OVERRIDE",
}
_OUR_SETTINGS = {
    "CHANNEL_NOT_ENABLED",
    "COUNTRY_CODE_MISMATCH",
    "COUNTRY_NOT_ENABLED",
    "INTERNATIONAL_SENDING_NOT_SUPPORTED",
    "INVALID_ARN",
    "INVALID_IDENTITY_FOR_DESTINATION_COUNTRY",
    "PRICE_OVER_THRESHOLD",
    "RESOURCE_NOT_ACCESSIBLE",
    "SENDER_ID_NOT_REGISTERED",
    "SENDER_ID_NOT_SUPPORTED",
    "SENDER_ID_REQUIRES_REGISTRATION",
    "UNKNOWN_OPERATION",
}
_THE_MESSAGES_OWN = {"destinationphonenumber", "messagebody", "mediaurls"}


def refusal_of(error: ClientError) -> Refusal:
    """What an answer means that proves that nothing was sent.

    A spend limit (ServiceQuotaExceeded) is ours: AWS or the account's owner raises it, and until then every
    message is refused alike.
    """
    answer = cast(dict[str, Any], error.response)
    said = str(answer.get("Reason") or "")
    reason = reason_of(error) + (f" ({discreet(said)})" if said else "")
    match code_of(error):
        case "Conflict":
            own = said in _NOT_TO_THAT_NUMBER
        case "Validation":
            own = said not in _OUR_SETTINGS and _names_the_message(answer.get("Fields"))
        case _:
            own = False
    return Rejected(reason) if own else Misconfigured(reason)


def _names_the_message(fields: list[dict[str, str]] | None) -> bool:
    """Whether a field at fault is the message's own: all others come from our settings. None named: the
    number or the text, for the rest is the same in every request."""
    return not fields or any(each.get("Name", "").lower() in _THE_MESSAGES_OWN for each in fields)
