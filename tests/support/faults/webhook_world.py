"""The webhook sender for crash tests: its queue, the ledger, the signing secret and receivers."""

import json
from collections import Counter, defaultdict
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import ClientError
from msgspec import structs
from standardwebhooks import Webhook as Signature

from mailroom.aws.secret import CachedSecret
from mailroom.channels.webhook.delivery import WebhookDelivery
from mailroom.delivery.worker import Worker
from mailroom.environment import WebhookSender
from mailroom.errors import RequestFailed
from mailroom.http.https import Answer, Deadline
from mailroom.http.url_policy import RequestTarget, UrlPolicy
from mailroom.message.message import Message
from mailroom.outcomes import Callback
from mailroom.providers.webhooks.sender import StandardWebhooks
from mailroom.providers.webhooks.signing import Signer
from tests.support.faults.base import VISIBILITY, BaseWorld, sender_settings
from tests.support.faults.outside import Clock, Queues
from tests.support.unit.webhooks import key_of

DELAYS = [5.0, 30.0, 300.0]
WEBHOOKS = "https://sqs/webhook"
KEY = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYqr"

Item = dict[str, Any]


class Receivers:
    """Receivers of webhooks.

    The first part of a path chooses: ok, flaky (503 twice), gone, dead, lost (accepts without a response,
    once). A request with a wrong signature is counted and rejected.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tries: Counter[str] = Counter()
        self.taken: dict[str, list[Any]] = defaultdict(list)
        self.forged = 0

    def post(self, target: RequestTarget, headers: Item, body: bytes, deadline: Deadline) -> Answer:
        fate = target.path_and_query.split("/")[1]
        self._tries[headers["webhook-id"]] += 1
        tries = self._tries[headers["webhook-id"]]
        if fate == "dead" or (fate == "flaky" and tries <= 2):
            return Answer(503)
        if fate == "gone":
            return Answer(410)
        self._take(target.host, headers, body)
        if fate == "lost" and tries == 1:
            raise RequestFailed("did not answer in time")
        return Answer(200)

    def _take(self, host: str, headers: Item, body: bytes) -> None:
        moment = int(headers["webhook-timestamp"])
        assert abs(moment - self._clock()) < 300
        signed = Signature(key_of(host, KEY)).sign(
            headers["webhook-id"], datetime.fromtimestamp(moment, UTC), body.decode()
        )
        if signed in headers["webhook-signature"].split(" "):
            self.taken[headers["webhook-id"]].append(json.loads(body))
        else:
            self.forged += 1


class Secrets:
    """A model of Secrets Manager with one value, and no previous version."""

    class exceptions:  # noqa: N801 - as boto3 has it
        class ResourceNotFoundException(ClientError):
            """The error for a missing version."""

    def get_secret_value(self, *, SecretId: str, VersionStage: str) -> Item:  # noqa: N803 - boto3's names
        if (SecretId, VersionStage) != ("signing", "AWSCURRENT"):
            raise self.exceptions.ResourceNotFoundException({"Error": {"Code": "404"}}, "GetSecretValue")
        return {"SecretString": KEY, "CreatedDate": datetime.fromtimestamp(0, UTC)}


class WebhookWorld(BaseWorld):
    """The sender with callbacks of messages in the ledger, and with webhook messages."""

    channel = "webhook"

    def __init__(self) -> None:
        super().__init__(queues=lambda clock: Queues(clock, VISIBILITY, len(DELAYS) + 1))
        self.receivers = Receivers(self.clock)
        self._secrets = Secrets()

    def callback(self, name: str) -> None:
        """Return a callback of a message in the ledger. The name begins with its receiver's fate."""
        writer = self.ledger_of(self.dynamodb)
        message = Message(id=name, event_type="fax", callback_url=self._url(name))
        claim: Any = writer.claim(message)
        writer.complete(claim, "signalwire", "fx-1")
        callback = Callback(f"msg_{name}", self._url(name), name, "fax", "sent.0", {"fax_id": name})
        self.enqueue(structs.asdict(callback))

    def message(self, name: str) -> None:
        self.enqueue({"id": name, "event_type": "webhook", "url": self._url(name), "payload": {"name": name}})

    def enqueue(self, body: Item) -> None:
        self.queues.put(WEBHOOKS, json.dumps(body))

    def worker(self) -> Worker:
        """Return the worker of a new process."""
        settings = _webhook_settings()
        https: Any = self.outside.watch(self.receivers, "post")
        secrets: Any = self.outside.watch(self._secrets, "get_secret_value")
        policy = UrlPolicy(ports=[443], resolve=lambda host, seconds: ["93.184.216.34"])
        signer = Signer(CachedSecret(secrets, "signing", self.clock), 86400, self.clock)
        adapter = StandardWebhooks(policy, signer, https, seconds=15, retry_after_cap=3600)
        tools = self.tools(settings)
        return Worker(settings.queue_url, tools, WebhookDelivery(settings, adapter, tools))

    def deliver(self) -> None:
        """Run one invocation with one record, the deployed batch size."""
        self.invoke(WEBHOOKS, lambda: self.worker().handle, most=1)

    def settle(self) -> None:
        """Deliver, and let time pass, until the queue is empty."""
        self.play_until_empty(self.deliver)

    def _url(self, name: str) -> str:
        return f"https://hooks.example.com/{name.partition('-')[0]}/{name}"


def _webhook_settings() -> WebhookSender:
    return WebhookSender(
        **sender_settings("webhook", WEBHOOKS, submit_seconds=15),
        signing_secret_arn="signing",
        signing_overlap_seconds=86400,
        delays=DELAYS,
        retry_after_cap_seconds=3600,
        allowed_networks=[],
        allowed_schemes=["https"],
        allowed_ports=[443],
    )
