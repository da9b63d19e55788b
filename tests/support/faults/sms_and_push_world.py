"""Texts, pushes and feedback for crash tests: queues, ledger, suppression list and providers on one clock."""

import json
from collections import Counter
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from botocore.exceptions import ReadTimeoutError

from mailroom.aws.dynamo_values import plain
from mailroom.channels.sms.adapter import SmsAdapter, text_delivery
from mailroom.channels.sms.contract import SmsRequest
from mailroom.content.payloads import Payloads
from mailroom.delivery.delivery import to_people
from mailroom.delivery.worker import Pace, Tools, Worker
from mailroom.environment import FeedbackSettings, PushSender, SmsSender
from mailroom.feedback.consumer import Feedback
from mailroom.ledger.ledger import Ledger
from mailroom.message.message import Reference
from mailroom.message.outcome import Evidence, Outcome, Rejected, Retry, Sent, Unknowable
from mailroom.providers.sns.sender import SnsPush
from mailroom.providers.twilio.sender import evidence
from mailroom.recipients.choices import Suppressions
from mailroom_stacks.settings.queues import RESEND_DELAYS
from tests.support.bodies import SENT, TOPIC, twilio
from tests.support.dynamodb import in_memory_client
from tests.support.faults.outside import NO_BUCKET, Clock, Outside, Queues, Stopped, refused
from tests.support.tables import create_ledger, create_table

FUNCTION_SECONDS = 60.0
LEASE, VISIBILITY = FUNCTION_SECONDS + 60, 6 * FUNCTION_SECONDS
MAX_RECEIVES = 12
SMS, PUSH, FEEDBACK = "https://sqs/sms", "https://sqs/push", "https://sqs/feedback"
HERE, THERE, STOPPED = "+16175551234", "+16175559999", "+16175550001"
APP = "arn:aws:sns:us-east-1:123456789012:app/GCM/phones"
ENDPOINT = APP.replace(":app/", ":endpoint/") + "/"

Item = dict[str, Any]


def sms(name: str, to: str = HERE, text: str | None = None, **changes: Any) -> Item:
    """Return a text message whose name chooses its fate. By default the name is also its text."""
    return {"id": name, "event_type": "sms", "to": to, "text": text or f"I am {name}", **changes}


def push(name: str, **changes: Any) -> Item:
    """Return a push to an endpoint of its own. The name chooses its fate."""
    return {"id": name, "event_type": "push", "to": f"{ENDPOINT}{name}", "title": name, **changes}


@dataclass
class Carrier:
    """An account at Twilio or AWS that records accepted texts and sends status events about them.

    The id chooses: throttled-once, refused, opted-out, lost-answer (once; accepted, but the response is
    lost), landline, silent (no callback). AWS offers no look-up of accepted texts.
    """

    clock: Clock
    queues: Queues
    ids: Iterator[int]
    """Counter that all carriers share, so that no two messages have the same id."""
    provider: str = "twilio"
    account: str = "ours"
    accepted: list[tuple[str, SmsRequest, float]] = field(default_factory=list)
    asked: Counter[str] = field(default_factory=Counter)

    def submit(self, request: SmsRequest) -> Outcome:
        name = Reference.read(request.reference).id
        self.asked[name] += 1
        if name.startswith("refused"):
            return Rejected("Twilio answered 400 (21211)")
        if name.startswith("opted-out"):
            return Rejected("Twilio answered 400 (21610)", opted_out=True)
        if name.startswith("throttled-once") and self.asked[name] == 1:
            return Retry("429")
        sid = f"SM{next(self.ids)}"
        self.accepted.append((sid, request, self.clock()))
        self._tell(name, sid, request)
        if name.startswith("lost-answer") and self.asked[name] == 1:
            raise TimeoutError("no answer")
        return Sent(sid, request.facts)

    def find(self, request: SmsRequest, since: float, other_ids: Container[str]) -> Evidence:
        if self.provider == "aws":
            return Unknowable()
        shown = [
            {"sid": sid, "to": each.to, "body": each.text, "date_created": _rfc2822(at)}
            for sid, each, at in reversed(self.accepted)
            if each.to == request.to
        ]
        return evidence(request, shown, since, other_ids)

    def _tell(self, name: str, sid: str, request: SmsRequest) -> None:
        if "silent" in name:
            return
        end = "undelivered" if name.startswith("landline") else "delivered"
        code: Item = {"ErrorCode": "30006"} if end == "undelivered" else {}
        at = int((self.clock() - SENT.timestamp()) * 1000)
        for status, delay in ((end, 0), (end, 200)):
            body = twilio(status, name, sid=sid, at=at, To=request.to, **(code if status == end else {}))
            self.queues.put(FEEDBACK, body, delay)


def _rfc2822(at: float) -> str:
    from email.utils import formatdate

    return formatdate(at, usegmt=False)


class Sns:
    """A model of SNS that records published pushes.

    The endpoint's name chooses: disabled, lost-answer, throttled-once.
    """

    def __init__(self) -> None:
        self.published: list[Item] = []
        self._asked: Counter[str] = Counter()

    def create_platform_endpoint(self, **request: Any) -> Item:
        return {"EndpointArn": ENDPOINT + request["Token"]}

    def publish(self, **request: Any) -> Item:
        name = request["TargetArn"].rsplit("/", 1)[1]
        self._asked[name] += 1
        if name.startswith("disabled"):
            raise refused("EndpointDisabled", 400)
        if name.startswith("throttled-once") and self._asked[name] == 1:
            raise refused("Throttled", 429)
        self.published.append(request)
        if name.startswith("lost-answer") and self._asked[name] == 1:
            raise ReadTimeoutError(endpoint_url="https://sns.example.com")
        return {"MessageId": f"push-{len(self.published)}"}


class PeopleWorld:
    """The functions for texts and pushes. A crash ends one invocation and has no other effect."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.outside = Outside()
        self.queues = Queues(self.clock, VISIBILITY, MAX_RECEIVES)
        self.changed: Item = {}
        """Changed settings of text messages, and the `account` at the provider, for processes that start from
        now on.
        """
        self.push_changed: Item = {}
        """Changed settings of pushes, and the `account` at the provider, for processes that start from now
        on.
        """
        self._ids = count(1)
        self.carrier = Carrier(self.clock, self.queues, self._ids)
        self._carriers = {("twilio", "ours"): self.carrier}
        self.sns = Sns()
        self.dynamodb = in_memory_client()
        create_ledger(self.dynamodb)
        create_table(self.dynamodb, "suppressions", "recipient", "channel")
        create_table(self.dynamodb, "preferences", "recipient", "topic")
        watched = self.outside.watch(
            self.dynamodb, "update_item", "batch_get_item", "batch_execute_statement", "get_paginator"
        )
        self.ledger = Ledger(watched, "ledger", lease=LEASE, ttl=1e6, clock=self.clock)
        self.list = Suppressions(watched, "suppressions", self.clock)
        self._payloads = Payloads(NO_BUCKET, "payloads")
        self._sqs = self.outside.watch(self.queues, "change_message_visibility_batch")

    def enqueue(self, *items: Item | str) -> None:
        for item in items:
            body = item if isinstance(item, str) else json.dumps(item)
            url = PUSH if '"event_type": "push"' in body else FEEDBACK if "twilio-text" in body else SMS
            self.queues.put(url, body)

    def worker(self, url: str) -> Worker:
        """Return the worker of a new process."""
        tools = Tools(
            self.ledger,
            self._payloads,
            self.list.client,
            self._sqs,
            Pace(0, self.clock, self.clock.sleep),
            self.clock,
            self.clock.sleep,
            lambda: 0.5,
        )
        if url == PUSH:
            settings = PushSender(
                **{**_settings("push", PUSH), **self.push_changed},
                platform_applications={"phones": APP},
                topics=[],
            )
            client: Any = self.outside.watch(self.sns, "publish", "create_platform_endpoint")
            adapter = SnsPush(client, applications={"phones": APP}, topics=[], clock=self.clock)
            return Worker(PUSH, tools, to_people(settings, adapter, tools))
        changed = {"sms_provider": "twilio", **self.changed}
        account = changed.pop("account", "ours")
        sms_settings = SmsSender(
            **{**_settings("sms", SMS), **changed},
            default_region="US",
            max_segments=10,
            media_seconds=60,
            clock_skew_seconds=60,
        )
        theirs = (sms_settings.sms_provider, account)
        self._carriers.setdefault(theirs, Carrier(self.clock, self.queues, self._ids, *theirs))
        carrier: Any = self.outside.watch(self._carriers[theirs], "submit", "find")
        sms_adapter = SmsAdapter(sms_settings, lambda: carrier, self._payloads)
        return Worker(SMS, tools, text_delivery(sms_settings, sms_adapter, tools))

    def feedback(self) -> Feedback:
        """Return the feedback function of a new process."""
        settings = FeedbackSettings(
            ledger_table="ledger",
            ledger_ttl_seconds=1e6,
            payload_bucket="payloads",
            queue_url=FEEDBACK,
            suppressions_table="suppressions",
            feedback_topics=[TOPIC],
            default_region="US",
        )
        return Feedback(settings, self.ledger, self.list, self._sqs)

    def deliver(self, url: str) -> None:
        """Run one invocation for a queue.

        After a crash, its records return at the end of their visibility timeout.
        """
        records = self.queues.receive(url)
        if not records:
            return
        handle = self.feedback().handle if url == FEEDBACK else self.worker(url).handle
        try:
            response = handle({"Records": records}, lambda: int(FUNCTION_SECONDS * 1000))
        except Stopped:
            return
        self.queues.settle(url, records, response)

    def settle(self, order: tuple[str, ...] = (SMS, PUSH, FEEDBACK)) -> None:
        """Deliver, and let time pass, until every queue is empty."""
        for _ in range(400):
            due = self.queues.next_visible()
            if due is None:
                return
            self.clock.now = max(self.clock.now, due)
            for url in order:
                self.deliver(url)
        raise AssertionError(f"not settled: {self.queues.messages}")

    def sends(self) -> Counter[str]:
        """Return how often the provider accepted each message."""
        accepted = [each for carrier in self._carriers.values() for each in carrier.accepted]
        texts = Counter(Reference.read(request.reference).id for _, request, _ in accepted)
        return texts + Counter(each["TargetArn"].rsplit("/", 1)[1] for each in self.sns.published)

    def found(self, name: str, event_type: str = "sms") -> Item:
        """Return the ledger's item, or {} if it does not exist."""
        key: Any = {"id": {"S": name}, "event_type": {"S": event_type}}
        return plain(self.dynamodb.get_item(TableName="ledger", Key=key).get("Item", {}))

    def listed(self) -> list[str]:
        """Return the recipients on the suppression list."""
        quiet = Suppressions(self.dynamodb, "suppressions", self.clock)
        return sorted(each.recipient for each in quiet.listed())


def _settings(channel: str, url: str) -> Item:
    return {
        "ledger_table": "ledger",
        "ledger_ttl_seconds": 1e6,
        "payload_bucket": "payloads",
        "channel": channel,
        "queue_url": url,
        "lease_seconds": LEASE,
        "pace_seconds": 0,
        "on_unknown": "resend",
        "resend_delays": RESEND_DELAYS,
        "backoff_seconds": 5,
        "backoff_cap_seconds": 300,
        "misconfigured_seconds": 20,
        "submit_seconds": 10,
        "record_seconds": 5,
        "suppressions_table": "suppressions",
        "preferences_table": "preferences",
    }


NewWorld = Callable[[], PeopleWorld]
