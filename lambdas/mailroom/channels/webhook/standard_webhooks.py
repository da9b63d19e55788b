"""Webhooks by the Standard Webhooks convention: a signed POST, whose receiver knows a repeat by its id."""

import hashlib
import time
from collections.abc import Container

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from mailroom.aws import clients
from mailroom.aws.secret import Secret, unreadable
from mailroom.channels.webhook.contract import Webhook
from mailroom.channels.webhook.signing import Signer, StageKey, UnusableKey
from mailroom.clock import Clock
from mailroom.environment import WebhookSender
from mailroom.http.https import Answer, Deadline, Https, Unanswered
from mailroom.http.provider import seconds_until
from mailroom.http.url_policy import BadUrl, Unresolved, UrlPolicy, host_of
from mailroom.message.message import encode
from mailroom.message.outcome import Evidence, Misconfigured, NotFound, Outcome, Rejected, Retry, Sent

GONE = 410
_FIXED = {"Content-Type": "application/json", "User-Agent": "mailroom-webhook", "Accept": "*/*"}


class Post(Struct, frozen=True):
    """One request to be made; `webhook_id` is the same in every try of it."""

    url: str
    webhook_id: str
    body: str


class Said(Struct, frozen=True):
    """What came of a request; `status` None: there was no answer."""

    outcome: Outcome
    status: int | None = None


class StandardWebhooks:
    """Here no answer is no riddle: the receiver drops a webhook-id that it has had, so every fault that may
    pass is tried again, whether the request went out or not. Reasons name host and status, no path."""

    provider = "webhook"
    account = None
    contract = Webhook

    def __init__(
        self,
        policy: UrlPolicy,
        signer: Signer,
        https: Https,
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
        """The adapter that a function's settings describe."""
        policy = UrlPolicy(
            schemes=settings.allowed_schemes,
            ports=settings.allowed_ports,
            networks=settings.allowed_networks,
        )
        return cls(
            policy,
            _signer(settings),
            Https(),
            seconds=settings.submit_seconds,
            retry_after_cap=settings.retry_after_cap_seconds,
        )

    def prepare(self, message: Webhook) -> Post:
        """The request for a message: its payload as compact JSON."""
        return Post(message.url, webhook_id(message), encode(message.payload))

    def submit(self, request: Post) -> Outcome:
        """Make the request."""
        return self.exchange(request).outcome

    def exchange(self, request: Post) -> Said:
        """Make the request, and say what the status was."""
        host = host_of(request.url)
        deadline = Deadline(self._seconds)
        try:
            target = self._policy.check(request.url, self._seconds)
            signed = self._signer.headers(target.host, request.webhook_id, request.body)
            answer = self._https.post(target, {**_FIXED, **signed}, request.body.encode(), deadline)
        except BadUrl as fault:
            return Said(Rejected(f"url: {fault}"))
        except UnusableKey as fault:
            return Said(Misconfigured(str(fault)))
        except (ClientError, BotoCoreError) as error:
            return Said(unreadable("the signing secret", error))
        except Unresolved as trouble:
            return Said(Retry(str(trouble)))
        except Unanswered as trouble:
            return Said(Retry(f"{host} {trouble}"))
        return Said(self._outcome(host, request.webhook_id, answer), answer.status)

    def look_up(self, message: Webhook, since: int, known: Container[str]) -> Evidence:  # noqa: ARG002 - no need
        """Nobody is asked: sending again is safe, for the receiver drops a webhook-id that it has had."""
        return NotFound()

    def _outcome(self, host: str, webhook_id: str, answer: Answer) -> Outcome:
        if 200 <= answer.status < 300:
            return Sent(webhook_id)
        if answer.status == GONE:
            return Rejected(f"{host} answered 410 Gone")
        wait = seconds_until(answer.headers.get("retry-after", ""), answer.headers, self._clock())
        return Retry(f"{host} answered {answer.status}", min(wait, self._retry_after_cap))


def _signer(settings: WebhookSender) -> Signer:
    client = clients.secretsmanager()
    stage_key = None
    if settings.stage_key_secret_arn:
        secret = Secret(client, settings.stage_key_secret_arn, time.time)
        stage_key = StageKey(secret, settings.stage_key_until)
    secret = Secret(client, settings.signing_secret_arn, time.time)
    return Signer(secret, settings.signing_overlap_seconds, time.time, stage_key)


def webhook_id(message: Webhook) -> str:
    """The same for every try of a message, and for no other message; an operator's resend is another."""
    digest = hashlib.sha256(f"{message.event_type}\0{message.id}\0{message.attempt}".encode()).hexdigest()
    return f"msg_{digest[:32]}"
