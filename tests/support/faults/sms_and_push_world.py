"""Texts, pushes and feedback for crash tests: queues, ledger, suppression list and providers on one clock."""

import json
from collections import Counter
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from botocore.exceptions import ReadTimeoutError

from mailroom.channels.sms.adapter import SmsAdapter, text_delivery
from mailroom.channels.sms.contract import SmsRequest
from mailroom.delivery.delivery import to_people
from mailroom.delivery.worker import Worker
from mailroom.environment import FeedbackSettings, PushSender, SmsSender
from mailroom.feedback.consumer import Feedback
from mailroom.message.message import Reference
from mailroom.message.outcome import Evidence, Outcome, Rejected, Retry, Sent, Unknowable
from mailroom.providers.sns.sender import SnsPush
from mailroom.providers.twilio.sender import evidence
from mailroom.recipients.choices import Suppressions
from tests.support.bodies import SENT, TOPIC, twilio_callback
from tests.support.faults.base import BaseWorld, sender_settings
from tests.support.faults.outside import Clock, Queues, ses_error

SMS, PUSH, FEEDBACK = "https://sqs/sms", "https://sqs/push", "https://sqs/feedback"
HERE, THERE, STOPPED = "+16175551234", "+16175559999", "+16175550001"
APP = "arn:aws:sns:us-east-1:123456789012:app/GCM/phones"
ENDPOINT = APP.replace(":app/", ":endpoint/") + "/"

OF_PEOPLE = {"suppressions_table": "suppressions", "preferences_table": "preferences"}
"""Tables of the choices that senders to people read."""

Item = dict[str, Any]


def fated_sms(name: str, to: str = HERE, text: str | None = None, **changes: Any) -> Item:
    """Return a text message whose name chooses its fate. By default the name is also its text."""
    return {"id": name, "event_type": "sms", "to": to, "text": text or f"I am {name}", **changes}


def fated_push(name: str, **changes: Any) -> Item:
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
            body = twilio_callback(
                status, name, sid=sid, at=at, To=request.to, **(code if status == end else {})
            )
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
            raise ses_error("EndpointDisabled", 400)
        if name.startswith("throttled-once") and self._asked[name] == 1:
            raise ses_error("Throttled", 429)
        self.published.append(request)
        if name.startswith("lost-answer") and self._asked[name] == 1:
            raise ReadTimeoutError(endpoint_url="https://sns.example.com")
        return {"MessageId": f"push-{len(self.published)}"}


class PeopleWorld(BaseWorld):
    """The functions for texts and pushes."""

    channel = "sms"

    def __init__(self) -> None:
        super().__init__(
            "suppressions",
            "preferences",
            calls=("update_item", "batch_get_item", "batch_execute_statement", "get_paginator"),
        )
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
        self.list = Suppressions(self.watched, "suppressions", self.clock)

    def enqueue(self, *items: Item | str) -> None:
        for item in items:
            body = item if isinstance(item, str) else json.dumps(item)
            url = PUSH if '"event_type": "push"' in body else FEEDBACK if "twilio-text" in body else SMS
            self.queues.put(url, body)

    def worker(self, url: str) -> Worker:
        """Return the worker of a new process."""
        if url == PUSH:
            settings = PushSender(
                **{**sender_settings("push", PUSH, **OF_PEOPLE), **self.push_changed},
                platform_applications={"phones": APP},
                topics=[],
            )
            tools = self.tools(settings)
            client: Any = self.outside.watch(self.sns, "publish", "create_platform_endpoint")
            adapter = SnsPush(client, applications={"phones": APP}, topics=[], clock=self.clock)
            return Worker(PUSH, tools, to_people(settings, adapter, tools))
        changed = {"sms_provider": "twilio", **self.changed}
        account = changed.pop("account", "ours")
        sms_settings = SmsSender(
            **{**sender_settings("sms", SMS, **OF_PEOPLE), **changed},
            default_region="US",
            max_segments=10,
            media_seconds=60,
            clock_skew_seconds=60,
        )
        tools = self.tools(sms_settings)
        theirs = (sms_settings.sms_provider, account)
        self._carriers.setdefault(theirs, Carrier(self.clock, self.queues, self._ids, *theirs))
        carrier: Any = self.outside.watch(self._carriers[theirs], "submit", "find")
        sms_adapter = SmsAdapter(sms_settings, lambda: carrier, self.payloads)
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
        return Feedback(settings, self.ledger, self.list, self.sqs)

    def deliver(self, url: str) -> None:
        """Run one invocation of the function of a queue."""
        self.invoke(url, lambda: self.feedback().handle if url == FEEDBACK else self.worker(url).handle)

    def settle(self, order: tuple[str, ...] = (SMS, PUSH, FEEDBACK)) -> None:
        """Deliver, and let time pass, until every queue is empty."""

        def deliver_all() -> None:
            for url in order:
                self.deliver(url)

        self.play_until_empty(deliver_all)

    def sends(self) -> Counter[str]:
        """Return how often the provider accepted each message."""
        accepted = [each for carrier in self._carriers.values() for each in carrier.accepted]
        texts = Counter(Reference.read(request.reference).id for _, request, _ in accepted)
        return texts + Counter(each["TargetArn"].rsplit("/", 1)[1] for each in self.sns.published)

    def listed(self) -> list[str]:
        """Return the recipients on the suppression list."""
        quiet = Suppressions(self.dynamodb, "suppressions", self.clock)
        return sorted(each.recipient for each in quiet.listed())


NewWorld = Callable[[], PeopleWorld]
