"""Text messages by AWS End User Messaging."""

import time
from collections.abc import Container
from typing import TYPE_CHECKING, Any, cast

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from mailroom.channels.provider_adapter import code_of, not_sent, reason_of, refused
from mailroom.channels.sms.contract import SmsRequest
from mailroom.clock import Clock
from mailroom.message.message import seconds_left
from mailroom.message.outcome import Evidence, Misconfigured, Outcome, Refusal, Rejected, Sent, Unknowable
from mailroom.telemetry import redact

if TYPE_CHECKING:
    from types_boto3_pinpoint_sms_voice_v2 import PinpointSMSVoiceV2Client

VALID_SECONDS = (5, 259_200)
"""Smallest and largest `TimeToLive` that the service allows, in seconds. The largest is the service's
default."""


class AwsSms(Struct, frozen=True):
    """Client of AWS End User Messaging. The service has neither idempotency keys nor a list of sent messages.
    Its events contain the request's `Context`, which holds Mailroom's reference."""

    account = "own"

    client: "PinpointSMSVoiceV2Client"
    sender: str
    """Origination identity: the id or ARN of a number or a pool, a number in E.164, or a sender id."""
    configuration_set: str
    clock: Clock = time.time

    def submit(self, request: SmsRequest) -> Outcome:
        """Submit the message. Raises if the outcome is unknown: after a 5xx response, or no response."""
        if request.media and not self.sender:
            return Misconfigured("media need an origination identity: set sms.sender")
        try:
            return self._send(request)
        except (ClientError, BotoCoreError) as error:
            return not_sent("AWS End User Messaging", error, refusal_of)

    def find(self, request: SmsRequest, since: float, other_ids: Container[str]) -> Evidence:  # noqa: ARG002 - the service does not list messages
        """Return Unknowable, because AWS cannot look a message up. A look-up is made only if the ledger
        contains no event which proves that AWS accepted the message."""
        return Unknowable()

    def _send(self, request: SmsRequest) -> Sent:
        arguments = self._arguments(request)
        if request.media:
            media = list(request.media)
            id_ = self.client.send_media_message(**arguments, MediaUrls=media)["MessageId"]
        else:
            id_ = self.client.send_text_message(**arguments, MessageType="TRANSACTIONAL")["MessageId"]
        return Sent(id_, request.facts)

    def _arguments(self, request: SmsRequest) -> dict[str, Any]:
        arguments = {
            "DestinationPhoneNumber": request.to,
            "OriginationIdentity": self.sender,
            "MessageBody": request.text,
            "ConfigurationSetName": self.configuration_set,
            "TimeToLive": seconds_left(request.expires, self.clock(), VALID_SECONDS),
            "Context": {"reference": request.reference},
        }
        return {name: value for name, value in arguments.items() if value}


_OPTED_OUT = "DESTINATION_PHONE_NUMBER_OPTED_OUT"
_NOT_TO_THAT_NUMBER = {
    # The owner of the AWS account has blocked the number or the country, so the refusal is intended.
    "DESTINATION_COUNTRY_BLOCKED_BY_PROTECT_CONFIGURATION",
    "DESTINATION_PHONE_NUMBER_BLOCKED_BY_PROTECT_NUMBER_OVERRIDE",
}
_NOT_TO_THAT_COUNTRY = {
    # The message is at fault, not the settings: anyone can enter a number in another country. Twilio's error
    # codes 21408 and 21612 are classified in the same way.
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
"""Error reasons for which the message itself is at fault, if the invalid field is one of `_OWN_FIELDS`."""
_OWN_FIELDS = {"destinationphonenumber", "messagebody", "mediaurls"}
"""Fields of the request that come from the item, in lower case. All other fields come from the stage's
settings."""


def refusal_of(error: ClientError) -> Refusal:
    """Classify an error response which proves that the message was not sent.

    For a spend limit (ServiceQuotaExceeded) the account is at fault and not the message: all messages are
    refused until AWS or the owner of the account raises the limit.
    """
    response = cast(dict[str, Any], error.response)
    code = str(response.get("Reason") or "")
    reason = reason_of(error) + (f" ({redact(code)})" if code else "")
    own_fault = False
    match code_of(error):
        case "Conflict" if code == _OPTED_OUT:
            return Rejected(reason, opted_out=True)
        case "Conflict":
            own_fault = code in _NOT_TO_THAT_NUMBER
        case "Validation":
            fields = {field.get("Name", "").lower() for field in response.get("Fields") or []}
            of_own_fields = bool(fields) and fields <= _OWN_FIELDS
            own_fault = code in _NOT_TO_THAT_COUNTRY or (code in _OF_A_FIELD and of_own_fields)
    return refused(error, reason, own=own_fault)
