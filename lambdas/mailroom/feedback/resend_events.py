"""Takes in Resend's webhooks: checks that Resend has signed them, and queues what they say of our mails.

Resend sends by Svix, whose signature is that of Standard Webhooks under names of its own:
https://docs.svix.com/receiving/verifying-payloads/how-manual.
"""

import hmac
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Meta, Struct
from standardwebhooks import Webhook as Signature

from mailroom.aws import clients
from mailroom.aws.secret import CachedSecret
from mailroom.channels.provider import Unconfigured
from mailroom.clock import Clock
from mailroom.environment import ResendEventsSettings
from mailroom.feedback.resend import SOURCE, ResendEvent
from mailroom.http import event as http_event
from mailroom.http.event import HttpError, HttpRequest
from mailroom.message.message import encode
from mailroom.telemetry import count, logger

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

SECRET_SECONDS = 30
"""For as long a webhook may be refused after its secret was replaced; Resend sends it again."""
TOLERANCE_SECONDS = 300
"""How old a signature may be, as Svix's own libraries have it."""
MAX_BODY_BYTES = 256 * 1024
"""An event has some 2 KB, and the addresses of 50 recipients."""
_SHAPE = '{"api_key": "re_…", "webhook_secret": "whsec_…"}'


class _Credentials(Struct, frozen=True):
    webhook_secret: Annotated[str, Meta(pattern="^whsec_[A-Za-z0-9+/]{16,}={0,2}$")]


class ResendEvents(Struct, frozen=True):
    """Answers the requests of an HTTP API (payload format 2.0)."""

    settings: ResendEventsSettings
    secret: CachedSecret
    sqs: "SQSClient"
    clock: Clock = time.time

    @classmethod
    def of(cls, settings: ResendEventsSettings) -> "ResendEvents":
        """What a function's settings describe."""
        secret = CachedSecret(clients.secretsmanager(), settings.resend_secret_arn, time.time, SECRET_SECONDS)
        return cls(settings, secret, clients.sqs())

    def answer(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """The response: 204 once the event is in the queue. A refusal has no body. After 500 and 503, where
        the fault is ours, Resend tries again for hours."""
        try:
            request = http_event.read(event, HttpRequest)
            body = request.text(MAX_BODY_BYTES)
            self._check(request, body)
            said = _event(body)
            self.sqs.send_message(
                QueueUrl=self.settings.feedback_queue_url,
                MessageBody=encode({"source": SOURCE, "event": msgspec.to_builtins(said)}),
            )
        except HttpError as fault:
            logger.warning("event refused", status=fault.status, reason=str(fault))
            count("ResendEventsRefused")
            return {"statusCode": fault.status}
        except Unconfigured as fault:
            logger.error("events cannot be checked", reason=str(fault))
            return _failed(500)
        except (ClientError, BotoCoreError) as error:
            logger.error("event not queued", error=str(error))
            return _failed(503)
        count("ResendEvents")
        return {"statusCode": 204}

    def _check(self, request: HttpRequest, body: str) -> None:
        """Raise HttpError for what Resend has not signed, or not now; Unconfigured."""
        id_, timestamp = request.header("svix-id"), request.header("svix-timestamp")
        if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 12):
            raise HttpError(401, "the signature has no time")
        if abs(self.clock() - int(timestamp)) > TOLERANCE_SECONDS:
            raise HttpError(401, "the signature is too old, or of a time to come")
        expected = self._signature().sign(id_, datetime.fromtimestamp(int(timestamp), UTC), body).encode()
        # Several stand there while a secret is replaced.
        given = request.header("svix-signature").encode("utf-8", "replace").split(b" ")
        if not any(hmac.compare_digest(expected, each) for each in given):
            raise HttpError(401, "the signature is missing or wrong")

    def _signature(self) -> Signature:
        try:
            text = self.secret.current().text
        except (ClientError, BotoCoreError, LookupError) as error:
            raise Unconfigured(f"Resend's secret cannot be read: {error}") from None
        try:
            return Signature(msgspec.json.decode(text, type=_Credentials).webhook_secret)
        except (msgspec.DecodeError, ValueError, RecursionError):
            # Its words may quote the secret.
            raise Unconfigured(
                f"Resend's secret is not {_SHAPE}; put the webhook's signing secret there"
            ) from None


def _event(body: str) -> ResendEvent:
    """Raises HttpError with 400."""
    try:
        return msgspec.json.decode(body, type=ResendEvent)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise HttpError(400, "signed, but no event of Resend") from None


def _failed(status: int) -> dict[str, Any]:
    count("ResendEventsFailed")
    return {"statusCode": status}
