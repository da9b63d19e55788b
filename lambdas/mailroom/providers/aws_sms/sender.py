"""Text messages by AWS End User Messaging."""

import time
from collections.abc import Container
from typing import TYPE_CHECKING, Any, cast

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from mailroom.aws import clients
from mailroom.channels.sms.contract import SmsRequest
from mailroom.clock import Clock
from mailroom.delivery.adapter import code_of, not_sent, reason_of, refused
from mailroom.environment import SmsSender
from mailroom.message.message import seconds_left
from mailroom.message.outcome import Evidence, Misconfigured, Outcome, Refusal, Sent, Unknowable
from mailroom.providers.aws_sms.refusals import REFUSALS
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
    """Origination identity: the id or ARN of a number, a pool or an RCS agent, a number in E.164, or a sender
    id."""
    configuration_set: str
    clock: Clock = time.time

    @classmethod
    def of(cls, settings: SmsSender) -> "AwsSms":
        client = clients.sms(settings.submit_seconds)
        return cls(client, settings.sms_sender, settings.sms_configuration_set)

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


_OWN_FIELDS = {"destinationphonenumber", "messagebody", "mediaurls"}
"""Fields of the request that come from the item, in lower case. All other fields come from the stage's
settings."""


def refusal_of(error: ClientError) -> Refusal:
    """Classify an error response which proves that the message was not sent, by the table of refusals. For a
    reason that the table lacks the configuration is at fault."""
    response = cast(dict[str, Any], error.response)
    code = str(response.get("Reason") or "")
    reason = reason_of(error) + (f" ({redact(code)})" if code else "")
    row = REFUSALS.get(code) or REFUSALS.get(code_of(error))
    fields = {field.get("Name", "").lower() for field in response.get("Fields") or []}
    if row is None or (row.fault == "message" and not (fields and fields <= _OWN_FIELDS)):
        return refused(error, reason)
    return row.refusal(reason)
