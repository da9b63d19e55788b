"""The webhook sender for crash tests: its queue, the ledger, the signing secret and receivers."""

import json
from collections import Counter, defaultdict
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import ClientError
from msgspec import structs
from standardwebhooks import Webhook as Signature

from mailroom.aws.dynamo_values import plain
from mailroom.aws.secret import CachedSecret
from mailroom.channels.webhook.delivery import WebhookDelivery
from mailroom.content.payloads import Payloads
from mailroom.delivery.worker import Pace, Tools, Worker
from mailroom.environment import WebhookSender
from mailroom.errors import RequestFailed
from mailroom.http.https import Answer, Deadline
from mailroom.http.url_policy import RequestTarget, UrlPolicy
from mailroom.ledger.ledger import Ledger
from mailroom.message.message import Message
from mailroom.outcomes import Callback
from mailroom.providers.webhooks.sender import StandardWebhooks
from mailroom.providers.webhooks.signing import Signer
from mailroom_stacks.settings.queues import RESEND_DELAYS
from tests.support.dynamodb import in_memory_client
from tests.support.faults.outside import NO_BUCKET, Clock, Outside, Queues, Stopped
from tests.support.tables import create_table
from tests.support.unit.webhooks import key_of

FUNCTION_SECONDS = 60.0
LEASE, VISIBILITY = FUNCTION_SECONDS + 60, 6 * FUNCTION_SECONDS
DELAYS = [5.0, 30.0, 300.0]
WEBHOOKS = "https://sqs/webhook"
KEY = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYqr"

Item = dict[str, Any]


class Receivers:
    """All receivers.

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


class WebhookWorld:
    """The sender with callbacks of messages in the ledger, and with webhook messages."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.outside = Outside()
        self.queues = Queues(self.clock, VISIBILITY, len(DELAYS) + 1)
        self.receivers = Receivers(self.clock)
        self.dynamodb = in_memory_client()
        create_table(self.dynamodb, "ledger")
        self.ledger = Ledger(
            self.outside.watch(self.dynamodb, "update_item"),
            "ledger",
            lease=LEASE,
            ttl=1e6,
            clock=self.clock,
        )
        self._secrets = Secrets()
        self._payloads = Payloads(NO_BUCKET, "payloads")
        self._sqs = self.outside.watch(self.queues, "change_message_visibility_batch")

    def callback(self, name: str) -> None:
        """Return a callback of a message in the ledger. The name begins with its receiver's fate."""
        writer = Ledger(self.dynamodb, "ledger", lease=LEASE, ttl=1e6, clock=self.clock)
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
        settings = _settings()
        https: Any = self.outside.watch(self.receivers, "post")
        secrets: Any = self.outside.watch(self._secrets, "get_secret_value")
        policy = UrlPolicy(ports=[443], resolve=lambda host, seconds: ["93.184.216.34"])
        signer = Signer(CachedSecret(secrets, "signing", self.clock), 86400, self.clock)
        adapter = StandardWebhooks(policy, signer, https, seconds=15, retry_after_cap=3600)
        tools = Tools(
            self.ledger,
            self._payloads,
            self.dynamodb,
            self._sqs,
            Pace.of(settings, self.clock, self.clock.sleep),
            self.clock,
            self.clock.sleep,
            lambda: 0.5,
        )
        return Worker(settings.queue_url, tools, WebhookDelivery(settings, adapter, tools))

    def deliver(self) -> None:
        """Run one invocation with one record, the deployed batch size."""
        records = self.queues.receive(WEBHOOKS, most=1)
        if records:
            try:
                response = self.worker().handle({"Records": records}, lambda: int(FUNCTION_SECONDS * 1000))
            except Stopped:
                return
            self.queues.settle(WEBHOOKS, records, response)

    def settle(self) -> None:
        for _ in range(300):
            due = self.queues.next_visible()
            if due is None:
                return
            self.clock.now = max(self.clock.now, due)
            self.deliver()
        raise AssertionError(f"not settled: {self.queues.messages}")

    def found(self, name: str, event_type: str) -> Item:
        """Return the ledger's item, or {} if it does not exist."""
        key: Any = {"id": {"S": name}, "event_type": {"S": event_type}}
        return plain(self.dynamodb.get_item(TableName="ledger", Key=key).get("Item", {}))

    def _url(self, name: str) -> str:
        return f"https://hooks.example.com/{name.partition('-')[0]}/{name}"


def _settings() -> WebhookSender:
    return WebhookSender(
        ledger_table="ledger",
        ledger_ttl_seconds=1e6,
        payload_bucket="payloads",
        channel="webhook",
        queue_url=WEBHOOKS,
        lease_seconds=LEASE,
        pace_seconds=0,
        on_unknown="resend",
        resend_delays=RESEND_DELAYS,
        backoff_seconds=5,
        backoff_cap_seconds=300,
        misconfigured_seconds=20,
        submit_seconds=15,
        record_seconds=5,
        signing_secret_arn="signing",
        signing_overlap_seconds=86400,
        delays=DELAYS,
        retry_after_cap_seconds=3600,
        allowed_networks=[],
        allowed_schemes=["https"],
        allowed_ports=[443],
    )
