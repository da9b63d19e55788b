"""Receives Resend's webhooks: verifies their signatures, and puts the events into the feedback queue.

Resend sends webhooks through Svix. Svix signs by the Standard Webhooks specification, but uses other names
for the headers: https://docs.svix.com/receiving/verifying-payloads/how-manual.
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
from mailroom.aws.secret import CachedSecret, read_secret
from mailroom.clock import Clock
from mailroom.environment import ResendMailEventsSettings
from mailroom.errors import HttpError, InvalidSecret
from mailroom.http import event as http_event
from mailroom.http.event import HttpRequest
from mailroom.message.message import encode
from mailroom.providers.resend.events import SOURCE, ResendEvent
from mailroom.telemetry import count

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

SECRET_SECONDS = 30
"""Seconds for which the signing secret is cached. After a change of the secret, valid webhooks may be refused
for as many seconds; Resend retries them."""
TOLERANCE_SECONDS = 300
"""Maximum age of a signature, in seconds. Svix's libraries have the same limit."""
MAX_BODY_BYTES = 256 * 1024
"""Maximum number of bytes of a request's body. An event has about 2 KB, plus the addresses of up to 50
recipients."""
_SHAPE = '{"api_key": "re_…", "webhook_secret": "whsec_…"}'


class _Credentials(Struct, frozen=True):
    webhook_secret: Annotated[
        str, Meta(pattern="^whsec_(?:[A-Za-z0-9+/]{4}){4,}(?:[A-Za-z0-9+/]{2,3})?={0,2}$")
    ]


class ResendMailEvents(Struct, frozen=True):
    """Handles requests of an API Gateway HTTP API (payload format 2.0)."""

    settings: ResendMailEventsSettings
    secret: CachedSecret
    sqs: "SQSClient"
    clock: Clock = time.time

    @classmethod
    def of(cls, settings: ResendMailEventsSettings) -> "ResendMailEvents":
        """Build the handler of Resend's webhooks from the settings of the function `resend_mail_events`."""
        secret = CachedSecret(clients.secretsmanager(), settings.resend_secret_arn, time.time, SECRET_SECONDS)
        return cls(settings, secret, clients.sqs())

    def answer(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Handle a request, and return the response: 204 if the event was put into the queue, otherwise the
        status of the error without a body. After the statuses 500 and 503, which are faults of the stage,
        Resend retries for hours."""
        return http_event.answered(lambda: self._answer(event), "ResendMailEvents")

    def _answer(self, event: Mapping[str, Any]) -> Mapping[str, Any]:
        request = http_event.read(event, HttpRequest)
        body = request.text(MAX_BODY_BYTES)
        self._check(request, body)
        queued = encode({"source": SOURCE, "event": msgspec.to_builtins(_event(body))})
        self.sqs.send_message(QueueUrl=self.settings.feedback_queue_url, MessageBody=queued)
        count("ResendMailEvents")
        return {"statusCode": 204}

    def _check(self, request: HttpRequest, body: str) -> None:
        """Verify a request's signature and the age of the signature. Raises HttpError with 401, or
        InvalidSecret."""
        id_, timestamp = request.header("svix-id"), request.header("svix-timestamp")
        if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 12):
            raise HttpError(401, "the timestamp of the signature is missing or invalid")
        if abs(self.clock() - int(timestamp)) > TOLERANCE_SECONDS:
            raise HttpError(401, "the timestamp of the signature is too old, or in the future")
        expected = self._signature().sign(id_, datetime.fromtimestamp(int(timestamp), UTC), body).encode()
        # The header may have several signatures: during a change of the secret, one for each secret.
        signatures = request.header("svix-signature").encode("utf-8", "replace").split(b" ")
        if not any(hmac.compare_digest(expected, signature) for signature in signatures):
            raise HttpError(401, "the signature is missing or invalid")

    def _signature(self) -> Signature:
        try:
            text = self.secret.current().text
        except (ClientError, BotoCoreError, LookupError) as error:
            raise InvalidSecret(f"Resend's secret cannot be read: {error}") from None
        problem = f"Resend's secret is not {_SHAPE}; add the webhook's signing secret"
        return Signature(read_secret(text, _Credentials, problem).webhook_secret)


def _event(body: str) -> ResendEvent:
    """Parse the event in a webhook's body. Raises HttpError with 400."""
    try:
        return msgspec.json.decode(body, type=ResendEvent)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise HttpError(400, "the signature is valid, but the body is not an event") from None
