"""Sends webhooks by the Standard Webhooks specification (https://www.standardwebhooks.com): signed POST
requests with an id, by which receivers recognise and drop repeated webhooks.

The signing key of each host is derived from the stage's secret. So a receiver cannot sign webhooks for other
receivers, and cannot compute the secret from the key.
"""

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Container
from contextlib import suppress
from datetime import UTC, datetime
from http import HTTPStatus

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct
from standardwebhooks import Webhook as Signature

from mailroom.aws import clients
from mailroom.aws.secret import CachedSecret, unreadable
from mailroom.channels.provider_adapter import WithoutLookUp
from mailroom.channels.webhook.contract import Webhook
from mailroom.clock import Clock
from mailroom.environment import WebhookSender
from mailroom.errors import InvalidRequest, InvalidSecret, RequestFailed
from mailroom.http.https import Answer, Deadline, HttpClient
from mailroom.http.provider_api import seconds_until
from mailroom.http.url_policy import UrlPolicy, host_of
from mailroom.message.message import encode
from mailroom.message.outcome import (
    Evidence,
    Misconfigured,
    NotFound,
    Outcome,
    Rejected,
    Retry,
    Sent,
)

KEY_BYTES = range(24, 65)
_PREFIX = "whsec_"
_LABEL = b"mailroom webhook key\0"
"""Prefix of the text from which a host's key is derived. The text of a signed webhook begins with the
webhook-id, which contains neither a space nor NUL. So even a signature made with the stage's secret itself
can never equal the key of a host."""


class Signer(Struct, frozen=True):
    """Signs webhooks with the key of the receiving host."""

    secret: CachedSecret
    overlap: float
    """Seconds after a change of the secret in which webhooks are signed with the previous secret too, so that
    receivers have time to change their keys."""
    clock: Clock

    def headers(self, host: str, webhook_id: str, body: str) -> dict[str, str]:
        """Return the three headers with which receivers at `host` verify the webhook. Raises InvalidSecret,
        or botocore's errors if the secret cannot be read."""
        timestamp = self.clock()
        # The time is rounded down, because the header and the signed text must contain the same whole second.
        second = int(timestamp)
        moment = datetime.fromtimestamp(second, UTC)
        keys = [_derived(key, host) for key in self._in_use(timestamp)]
        signatures = [Signature(key).sign(webhook_id, moment, body) for key in keys]
        return {
            "webhook-id": webhook_id,
            "webhook-timestamp": str(second),
            "webhook-signature": " ".join(signatures),
        }

    def _in_use(self, timestamp: float) -> list[bytes]:
        current = self.secret.current()
        keys = [_key(current.text)]
        if timestamp - current.created < self.overlap and (previous := self.secret.previous()) is not None:
            # An invalid previous secret is left out: webhooks cannot have been signed with it, so receivers
            # do not expect its signature.
            with suppress(InvalidSecret):
                keys.append(_key(previous.text))
        return keys


def host_key(secret: str, host: str) -> str:
    """Return the key with which receivers at `host` verify webhooks, in the format of the specification
    (whsec_ and base64). `host` has the form that `UrlPolicy.read` returns. Raises InvalidSecret."""
    return _PREFIX + base64.b64encode(_derived(_key(secret), host)).decode()


def _derived(key: bytes, host: str) -> bytes:
    return hmac.digest(key, _LABEL + host.encode(), "sha256")


def _key(text: str) -> bytes:
    digits = text.strip().removeprefix(_PREFIX).rstrip("=")
    try:
        key = base64.b64decode(digits + "=" * (-len(digits) % 4), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) not in KEY_BYTES:
        raise InvalidSecret(
            "the signing secret is no key; put base64 of 24 to 64 random bytes there, with or without whsec_ "
            "(for example what `openssl rand -base64 32` prints)"
        )
    return key


_FIXED = {"Content-Type": "application/json", "User-Agent": "mailroom-webhook", "Accept": "*/*"}


class Post(Struct, frozen=True):
    """POST request to an endpoint."""

    url: str
    webhook_id: str
    """Id of the webhook, the same in every try."""
    body: str


class PostResult(Struct, frozen=True):
    """Result of a POST request."""

    outcome: Outcome
    status: int | None = None
    """HTTP status of the response; None without a response."""


class StandardWebhooks(WithoutLookUp, Struct, frozen=True):
    """Adapter for the endpoints of webhooks.

    A request without a response is retried, even though it may have arrived, because receivers drop a
    repeated webhook-id. Reasons in the ledger and the log name the host and the status, but not the path.
    """

    provider = "webhook"
    contract = Webhook

    policy: UrlPolicy
    signer: Signer
    https: HttpClient
    seconds: float
    """Longest duration of a request."""
    retry_after_cap: float
    """Limit of the wait that a receiver can request by the header Retry-After, in seconds."""
    clock: Clock = time.time

    @classmethod
    def of(cls, settings: WebhookSender) -> "StandardWebhooks":
        policy = UrlPolicy(
            schemes=settings.allowed_schemes,
            ports=settings.allowed_ports,
            networks=settings.allowed_networks,
        )
        secret = CachedSecret(clients.secretsmanager(), settings.signing_secret_arn, time.time)
        return cls(
            policy,
            Signer(secret, settings.signing_overlap_seconds, time.time),
            HttpClient(),
            seconds=settings.submit_seconds,
            retry_after_cap=settings.retry_after_cap_seconds,
        )

    def prepare(self, message: Webhook) -> Post:
        """Return the request for a message, with its payload as compact JSON."""
        return Post(message.url, webhook_id(message), encode(message.payload))

    def submit(self, request: Post) -> Outcome:
        return self.exchange(request).outcome

    def exchange(self, request: Post) -> PostResult:
        """Make the request, and return its outcome with the status of the response."""
        host = host_of(request.url)
        try:
            key_host = self.policy.read(request.url).host
            signature = self.signer.headers(key_host, request.webhook_id, request.body)
            # The deadline is set after the secret was read, so that reading the secret does not shorten the
            # request's time.
            deadline = Deadline(self.seconds)
            target = self.policy.check(request.url, self.seconds)
            response = self.https.post(target, {**_FIXED, **signature}, request.body.encode(), deadline)
        except InvalidRequest as fault:
            return PostResult(Rejected(f"url: {fault}"))
        except InvalidSecret as fault:
            return PostResult(Misconfigured(str(fault)))
        except (ClientError, BotoCoreError) as error:
            return PostResult(unreadable("the signing secret", error).outcome)
        except RequestFailed as trouble:
            return PostResult(Retry(f"{host} {trouble}"))
        return PostResult(self._outcome(host, request.webhook_id, response), response.status)

    def look_up(self, message: object, since: int, other_ids: Container[str]) -> Evidence:  # noqa: ARG002 - sending again is safe
        """Return NotFound, so that the message is sent again. This is safe, because receivers drop a repeated
        webhook-id."""
        return NotFound()

    def _outcome(self, host: str, webhook_id: str, response: Answer) -> Outcome:
        if 200 <= response.status < 300:
            return Sent(webhook_id)
        if response.status == HTTPStatus.GONE:
            return Rejected(f"{host} answered 410 Gone")
        wait = seconds_until(response.headers.get("retry-after", ""), response.headers, self.clock())
        return Retry(f"{host} answered {response.status}", min(wait, self.retry_after_cap))


def webhook_id(message: Webhook) -> str:
    """Return the webhook-id of a message. All tries have the same id; after a resend by an operator, the
    message has another id."""
    digest = hashlib.sha256(f"{message.event_type}\0{message.id}\0{message.attempt}".encode()).hexdigest()
    return f"msg_{digest[:32]}"
