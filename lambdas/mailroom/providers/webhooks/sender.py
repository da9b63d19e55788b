"""Sends webhooks by the Standard Webhooks specification (https://www.standardwebhooks.com): signed POST
requests with an id, by which receivers recognise and drop repeated webhooks.
"""

import hashlib
import time
from collections.abc import Container
from http import HTTPStatus

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from mailroom.aws import clients
from mailroom.aws.secret import CachedSecret, unreadable
from mailroom.channels.webhook.contract import Post, PostResult, Webhook
from mailroom.clock import Clock
from mailroom.delivery.adapter import WithoutLookUp
from mailroom.environment import WebhookSender
from mailroom.errors import InvalidRequest, InvalidSecret, RequestFailed
from mailroom.http.https import Answer, Deadline, HttpClient
from mailroom.http.provider_api import seconds_until
from mailroom.http.url_policy import UrlPolicy, host_of
from mailroom.message.message import encode
from mailroom.message.outcome import Evidence, Misconfigured, NotFound, Outcome, Rejected, Retry, Sent
from mailroom.providers.webhooks.signing import Signer

_FIXED = {"Content-Type": "application/json", "User-Agent": "mailroom-webhook", "Accept": "*/*"}


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
    """Maximum duration of a request in seconds."""
    retry_after_cap: float
    """Maximum wait that a receiver can request by the header Retry-After, in seconds."""
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
