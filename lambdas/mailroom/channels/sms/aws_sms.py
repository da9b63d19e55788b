"""Text messages by AWS End User Messaging."""

import time
from collections.abc import Container
from typing import TYPE_CHECKING, Any

from mailroom.channels.provider import asked
from mailroom.channels.sms.aws_sms_errors import refusal_of
from mailroom.channels.sms.provider import SmsRequest, seconds_left
from mailroom.clock import Clock
from mailroom.message.outcome import Evidence, Misconfigured, Outcome, Sent, Unknowable

if TYPE_CHECKING:
    from types_boto3_pinpoint_sms_voice_v2 import PinpointSMSVoiceV2Client

VALID_SECONDS = (5, 259_200)
"""TimeToLive, by the service's model; the longest is the default."""


class AwsSms:
    """It has no idempotency key and no list of what was sent; `Context` comes back in its events."""

    provider = "aws"
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
        """Ask for the message. A 5xx answer or none at all raises: then nobody knows."""
        if request.media and not self._sender:
            return Misconfigured("media need an origination identity: set sms.sender")
        said = asked("AWS End User Messaging", lambda: self._sent(request), refusal_of)
        return Sent(said, request.facts) if isinstance(said, str) else said

    def find(self, request: SmsRequest, since: float, known: Container[str]) -> Evidence:  # noqa: ARG002 - no list call
        """It cannot tell. What its events told stands in the ledger, and a claim would have met it there."""
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
