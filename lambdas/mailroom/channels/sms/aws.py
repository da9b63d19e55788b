"""Text messages by AWS End User Messaging."""

import time
from collections.abc import Container
from typing import TYPE_CHECKING, Any, cast

from botocore.exceptions import BotoCoreError, ClientError

from mailroom.channels.provider import code_of, not_sent, reason_of, refused
from mailroom.channels.sms.contract import SmsRequest
from mailroom.clock import Clock
from mailroom.message.message import seconds_left
from mailroom.message.outcome import Evidence, Misconfigured, Outcome, Refusal, Rejected, Sent, Unknowable
from mailroom.telemetry import redact

if TYPE_CHECKING:
    from types_boto3_pinpoint_sms_voice_v2 import PinpointSMSVoiceV2Client

VALID_SECONDS = (5, 259_200)
"""TimeToLive, by the service's model; the longest is the default."""


class AwsSms:
    """AWS has no idempotency key and no list of what was sent; `Context` comes back in its events."""

    account = "own"

    def __init__(
        self,
        client: "PinpointSMSVoiceV2Client",
        *,
        sender: str,
        configuration_set: str,
        clock: Clock = time.time,
    ) -> None:
        """`sender` is the origination identity: a number, its id or ARN, a pool's, or a sender id."""
        self._client = client
        self._sender = sender
        self._configuration_set = configuration_set
        self._clock = clock

    def submit(self, request: SmsRequest) -> Outcome:
        """Ask for the message. Raises where nobody knows: a 5xx answer, or no answer."""
        if request.media and not self._sender:
            return Misconfigured("media need an origination identity: set sms.sender")
        try:
            return Sent(self._sent(request), request.facts)
        except (ClientError, BotoCoreError) as error:
            return not_sent("AWS End User Messaging", error, refusal_of)

    def find(self, request: SmsRequest, since: float, known: Container[str]) -> Evidence:  # noqa: ARG002 - no list call
        """AWS cannot tell. Its events are in the ledger, where the claim would have met them."""
        return Unknowable()

    def _sent(self, request: SmsRequest) -> str:
        arguments = self._arguments(request)
        if request.media:
            return self._client.send_media_message(**arguments, MediaUrls=list(request.media))["MessageId"]
        return self._client.send_text_message(**arguments, MessageType="TRANSACTIONAL")["MessageId"]

    def _arguments(self, request: SmsRequest) -> dict[str, Any]:
        valid = seconds_left(request.expires, self._clock(), VALID_SECONDS)
        arguments = {
            "DestinationPhoneNumber": request.to,
            "OriginationIdentity": self._sender,
            "MessageBody": request.text,
            "ConfigurationSetName": self._configuration_set,
            "TimeToLive": valid,
            "Context": {"reference": request.reference},
        }
        return {name: value for name, value in arguments.items() if value}


_OPTED_OUT = "DESTINATION_PHONE_NUMBER_OPTED_OUT"
_NOT_TO_THAT_NUMBER = {
    # Our own list of numbers that get nothing: what it blocks is meant to be blocked.
    "DESTINATION_COUNTRY_BLOCKED_BY_PROTECT_CONFIGURATION",
    "DESTINATION_PHONE_NUMBER_BLOCKED_BY_PROTECT_NUMBER_OVERRIDE",
}
_NOT_TO_THAT_COUNTRY = {
    # Anybody may type such a number, so it is the message's own fault, as Twilio's 21408 and 21612 are.
    "COUNTRY_CODE_MISMATCH",
    "COUNTRY_NOT_ENABLED",
    "DESTINATION_COUNTRY_BLOCKED",
    "INTERNATIONAL_SENDING_NOT_SUPPORTED",
    "INVALID_IDENTITY_FOR_DESTINATION_COUNTRY",
}
_OF_A_FIELD = {
    "CANNOT_PARSE",
    "FIELD_VALIDATION_FAILED",
    "INVALID_PARAMETER",
    "MAXIMUM_SIZE_EXCEEDED",
    "MEDIA_TYPE_NOT_SUPPORTED",
}
"""Reasons that are the message's if the field at fault is."""
_OWN_FIELDS = {"destinationphonenumber", "messagebody", "mediaurls"}
"""The fields that come from the item, in lower case; all others come from our settings."""


def refusal_of(error: ClientError) -> Refusal:
    """What an answer means that proves that nothing was sent.

    A spend limit (ServiceQuotaExceeded) is ours: AWS or the account's owner raises it, and until then every
    message is refused alike.
    """
    answer = cast(dict[str, Any], error.response)
    said = str(answer.get("Reason") or "")
    reason = reason_of(error) + (f" ({redact(said)})" if said else "")
    match code_of(error):
        case "Conflict" if said == _OPTED_OUT:
            return Rejected(reason, opted_out=True)
        case "Conflict":
            own = said in _NOT_TO_THAT_NUMBER
        case "Validation":
            fields = {each.get("Name", "").lower() for each in answer.get("Fields") or []}
            of_own_fields = bool(fields) and fields <= _OWN_FIELDS
            own = said in _NOT_TO_THAT_COUNTRY or (said in _OF_A_FIELD and of_own_fields)
        case _:
            own = False
    return refused(error, reason, own=own)
