"""Webhooks by the Standard Webhooks convention: a signed POST, whose receiver knows a repeat by its id.

https://www.standardwebhooks.com. Each host has a key of its own, derived from the stage's secret: what one
receiver knows signs nothing that another receiver believes, and nobody can work back from a host's key to
the secret.
"""

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Container
from contextlib import suppress
from datetime import UTC, datetime

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct
from standardwebhooks import Webhook as Signature

from mailroom.aws import clients
from mailroom.aws.secret import CachedSecret, unreadable
from mailroom.channels.provider import WithoutLookUp
from mailroom.channels.webhook.contract import Webhook
from mailroom.clock import Clock
from mailroom.environment import WebhookSender
from mailroom.http.https import Answer, Deadline, HttpClient, Unanswered
from mailroom.http.provider import seconds_until
from mailroom.http.url_policy import BadUrl, Unresolved, UrlPolicy, host_of
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
"""Stands before the host. What is signed begins with a webhook-id, which has neither space nor NUL: so no
signature under the same secret is ever a host's key."""


class UnusableKey(ValueError):
    """The secret is no signing key; the sentence says what to put there, and nothing of what is there."""


class Signer:
    """Signs with the key of the host that is sent to. For `overlap` seconds after a new secret was put, the
    key derived from the secret before signs too, so that receivers can change over in their own time."""

    def __init__(self, secret: CachedSecret, overlap: float, clock: Clock) -> None:
        self._secret = secret
        self._overlap = overlap
        self._clock = clock

    def headers(self, host: str, webhook_id: str, body: str) -> dict[str, str]:
        """The three headers that let the receivers of `host` verify `body`. Raises UnusableKey, or what
        reading a secret raised."""
        now = self._clock()
        second = int(now)  # cut here once: what is signed is what the header says
        moment = datetime.fromtimestamp(second, UTC)
        keys = [_derived(key, host) for key in self._in_use(now)]
        signatures = [Signature(key).sign(webhook_id, moment, body) for key in keys]
        return {
            "webhook-id": webhook_id,
            "webhook-timestamp": str(second),
            "webhook-signature": " ".join(signatures),
        }

    def _in_use(self, now: float) -> list[bytes]:
        current = self._secret.current()
        keys = [_key(current.text)]
        if now - current.created < self._overlap:
            previous = self._secret.previous()
            # One that is no key has never signed anything, so no receiver misses it.
            with suppress(UnusableKey):
                keys += [_key(previous.text)] if previous is not None else []
        return keys


def host_key(secret: str, host: str) -> str:
    """The key that the receivers of `host` verify with, as libraries of the convention take it. `host` is
    spelt as `UrlPolicy.read` spells it. Raises UnusableKey."""
    return _PREFIX + base64.b64encode(_derived(_key(secret), host)).decode()


def _derived(key: bytes, host: str) -> bytes:
    return hmac.digest(key, _LABEL + host.encode(), "sha256")


def _key(text: str) -> bytes:
    bare = text.strip().removeprefix(_PREFIX).rstrip("=")
    try:
        key = base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) not in KEY_BYTES:
        raise UnusableKey(
            "the signing secret is no key; put base64 of 24 to 64 random bytes there, with or without whsec_ "
            "(for example what `openssl rand -base64 32` prints)"
        )
    return key


GONE = 410
_FIXED = {"Content-Type": "application/json", "User-Agent": "mailroom-webhook", "Accept": "*/*"}


class Post(Struct, frozen=True):
    """One request to be made; `webhook_id` is the same in every try of it."""

    url: str
    webhook_id: str
    body: str


class PostResult(Struct, frozen=True):
    """What came of a request; `status` None: there was no answer."""

    outcome: Outcome
    status: int | None = None


class StandardWebhooks(WithoutLookUp):
    """Here no answer is no riddle: the receiver drops a webhook-id that it has had, so every fault that may
    pass is tried again, whether the request went out or not. Reasons name host and status, no path."""

    provider = "webhook"
    contract = Webhook

    def __init__(
        self,
        policy: UrlPolicy,
        signer: Signer,
        https: HttpClient,
        *,
        seconds: float,
        retry_after_cap: float,
        clock: Clock = time.time,
    ) -> None:
        """`seconds` bounds a request as a whole, `retry_after_cap` how long a receiver may make us wait."""
        self._policy = policy
        self._signer = signer
        self._https = https
        self._seconds = seconds
        self._retry_after_cap = retry_after_cap
        self._clock = clock

    @classmethod
    def of(cls, settings: WebhookSender) -> "StandardWebhooks":
        policy = UrlPolicy(
            schemes=settings.allowed_schemes,
            ports=settings.allowed_ports,
            networks=settings.allowed_networks,
        )
        return cls(
            policy,
            _signer(settings),
            HttpClient(),
            seconds=settings.submit_seconds,
            retry_after_cap=settings.retry_after_cap_seconds,
        )

    def prepare(self, message: Webhook) -> Post:
        """The request for a message: its payload as compact JSON."""
        return Post(message.url, webhook_id(message), encode(message.payload))

    def submit(self, request: Post) -> Outcome:
        return self.exchange(request).outcome

    def exchange(self, request: Post) -> PostResult:
        """Make the request, and say what the status was."""
        host = host_of(request.url)
        try:
            spelt = self._policy.read(request.url).host
            signed = self._signer.headers(spelt, request.webhook_id, request.body)
            deadline = Deadline(self._seconds)  # from here on: reading the secret is not the receiver's time
            target = self._policy.check(request.url, self._seconds)
            answer = self._https.post(target, {**_FIXED, **signed}, request.body.encode(), deadline)
        except BadUrl as fault:
            return PostResult(Rejected(f"url: {fault}"))
        except UnusableKey as fault:
            return PostResult(Misconfigured(str(fault)))
        except (ClientError, BotoCoreError) as error:
            return PostResult(unreadable("the signing secret", error).outcome)
        except Unresolved as trouble:
            return PostResult(Retry(str(trouble)))
        except Unanswered as trouble:
            return PostResult(Retry(f"{host} {trouble}"))
        return PostResult(self._outcome(host, request.webhook_id, answer), answer.status)

    def look_up(self, message: object, since: int, known: Container[str]) -> Evidence:  # noqa: ARG002 - no need
        """Return NotFound: sending again is safe, for the receiver drops a webhook-id that it has had."""
        return NotFound()

    def _outcome(self, host: str, webhook_id: str, answer: Answer) -> Outcome:
        if 200 <= answer.status < 300:
            return Sent(webhook_id)
        if answer.status == GONE:
            return Rejected(f"{host} answered 410 Gone")
        wait = seconds_until(answer.headers.get("retry-after", ""), answer.headers, self._clock())
        return Retry(f"{host} answered {answer.status}", min(wait, self._retry_after_cap))


def _signer(settings: WebhookSender) -> Signer:
    secret = CachedSecret(clients.secretsmanager(), settings.signing_secret_arn, time.time)
    return Signer(secret, settings.signing_overlap_seconds, time.time)


def webhook_id(message: Webhook) -> str:
    """The id that every try of a message has, and no other message; an operator's resend has another."""
    digest = hashlib.sha256(f"{message.event_type}\0{message.id}\0{message.attempt}".encode()).hexdigest()
    return f"msg_{digest[:32]}"
