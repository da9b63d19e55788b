"""Events that SES publishes about accepted mails, and the account's suppression list.

As at SES, events arrive in any order, some of them twice, and some before the response to SendEmail. The
emulator has no suppression list, so this module has one. Addresses of hard bounces and complaints are added
to it. Unlike SES, this includes addresses of the mailbox simulator, because only these addresses bounce here.
"""

import json
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from email.utils import parseaddr
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import unquote

from urllib3.exceptions import HTTPError

from mailroom.clock import Clock
from mailroom_local.providers.delay_queue import DelayQueue
from mailroom_local.providers.http import Reply, Request, json_reply
from mailroom_local.providers.ses_events import EVENT_TYPES, AcceptedMail, Address, Event, Kind, event, send
from mailroom_local.providers.sns import batch
from mailroom_local.providers.upstream import Upstream

EARLY = 0.05
"""Share of mails whose event Send is published before the response to SendEmail."""
BATCH = 10
VALIDATED = "Successfully validated SNS topic for Amazon SES event publishing."
"""Text that SES publishes to a topic when it becomes an event destination."""

_MATCHING = {"DeliveryDelay": "DELIVERY_DELAY"}
_LISTED: dict[Kind, str] = {"hard": "BOUNCE", "complaint": "COMPLAINT"}
SUPPRESSION_PATH = "/v2/email/suppression/addresses"


class SuppressionList:
    """Suppression list in memory. It ignores the case of addresses, and is thread-safe."""

    def __init__(self) -> None:
        self._listed: dict[str, dict[str, Any]] = {}
        self._lock = threading.Lock()

    def add(self, address: str, reason: str, seconds: float, attributes: Mapping[str, str]) -> None:
        """Add an address to the list, replacing an earlier entry. `seconds` is the time in epoch seconds."""
        entry = {
            "EmailAddress": address,
            "Reason": reason,
            "LastUpdateTime": seconds,
            "Attributes": attributes,
        }
        with self._lock:
            self._listed[address.lower()] = entry

    def __contains__(self, address: str) -> bool:
        return address.lower() in self._listed

    def handle(self, request: Request) -> Reply:
        """Return the response to a PUT, or to a GET or DELETE of one address. The path starts with
        SUPPRESSION_PATH."""
        if request.method == "PUT":
            put = json.loads(request.body)
            self.add(put["EmailAddress"], put["Reason"], time.time(), {})
            return json_reply(HTTPStatus.OK, {})
        address = unquote(request.route.removeprefix(SUPPRESSION_PATH).strip("/"))
        with self._lock:
            entry = self._listed.get(address.lower())
            if request.method == "DELETE":
                self._listed.pop(address.lower(), None)
        if entry is None:
            message = f"Email address {address} does not exist on your suppression list."
            return ses_error(HTTPStatus.NOT_FOUND, "NotFoundException", message)
        return json_reply(
            HTTPStatus.OK, {} if request.method == "DELETE" else {"SuppressedDestination": entry}
        )


class TopicMessage(NamedTuple):
    """Message to be published to a topic."""

    topic: str
    text: str


class SesFeedback:
    """Publishes the events of accepted mails. Thread-safe."""

    def __init__(self, upstream: Upstream, suppressed: SuppressionList, clock: Clock = time.time) -> None:
        self._upstream = upstream
        self._suppressed = suppressed
        self._clock = clock
        self._destinations: dict[str, list[dict[str, Any]]] = {}
        self.queue = DelayQueue(self._publish, BATCH, clock)

    def accepted(self, message_id: str, content: Mapping[str, Any], request: Request) -> None:
        """Schedule the events of a mail. Events that come before the response are published before this
        method returns."""
        destinations = self._topics_of(content.get("configuration_set"), request)
        if not destinations:
            return
        recipients = tuple(each for kind in ("to", "cc", "bcc") for each in content[kind])
        addresses = [Address.of(each) for each in recipients]
        truncated = any(each.asks("truncated") for each in addresses)
        mail = AcceptedMail(message_id, content, recipients, self._clock(), truncated)
        first = 1 if self.queue.chance(EARLY) and not self.queue.paused else 0
        events = [send(mail), *self._after(mail, addresses)]
        if any(each.asks("early") for each in addresses):
            first = len(events)
        now = [message for each in events[:first] for message in _messages(each, destinations)]
        for start in range(0, len(now), BATCH):
            for again in self._publish(now[start : start + BATCH]):
                self.queue.add(again, 0)
        for each in events[first:]:
            for message in _messages(each, destinations):
                self.queue.report(message)

    def _after(self, mail: AcceptedMail, addresses: list[Address]) -> list[Event]:
        """Return the events after Send. Add the addresses of hard bounces and complaints to the account's
        suppression list."""
        events: list[Event] = []
        for recipient, address in zip(mail.recipients, addresses, strict=True):
            if "reject" in address.course:
                return [event(mail, "reject", recipient, 0.5)]
            bare = parseaddr(recipient)[1]
            course: tuple[Kind, ...] = ("listed",) if bare in self._suppressed else address.course
            for step, kind in enumerate(course, 1):
                report = event(mail, kind, recipient, 0.5 * step)
                events.append(report)
                if kind in _LISTED:
                    feedback_id = report[EVENT_TYPES[kind].lower()]["feedbackId"]
                    ids = {"MessageId": mail.message_id, "FeedbackId": feedback_id}
                    self._suppressed.add(bare, _LISTED[kind], self._clock(), ids)
        return events

    def _publish(self, messages: list[TopicMessage]) -> list[TopicMessage]:
        """Publish at most ten messages. Return those that the emulator did not accept."""
        by_topic: dict[str, list[TopicMessage]] = defaultdict(list)
        for each in messages:
            by_topic[each.topic].append(each)
        failed: list[TopicMessage] = []
        for topic, texts in by_topic.items():
            if not self._is_taken(topic, [each.text for each in texts]):
                failed += texts
        return failed

    def _is_taken(self, topic: str, texts: list[str]) -> bool:
        try:
            reply = self._upstream.pass_on(batch(topic, texts))
        except HTTPError as trouble:
            print(f"{topic}: {trouble}", flush=True)
            return False
        if reply.status != 200:
            print(f"{topic}: {reply.status} {reply.body.decode()}", flush=True)
        return reply.status == 200

    def _topics_of(self, name: str | None, request: Request) -> list[dict[str, Any]]:
        """Return the topics of a configuration set. They are looked up again until the set has a topic."""
        if not name:
            return []
        if name not in self._destinations:
            path = f"/v2/email/configuration-sets/{name}/event-destinations"
            answer = self._upstream.pass_on(Request("GET", path, request.headers, b""))
            every = json.loads(answer.body).get("EventDestinations", []) if answer.status == 200 else []
            topics = [
                destination
                for destination in every
                if destination.get("Enabled") and "SnsDestination" in destination
            ]
            if not topics:
                return []
            self._destinations[name] = topics
            self._publish(
                [TopicMessage(destination["SnsDestination"]["TopicArn"], VALIDATED) for destination in topics]
            )
        return self._destinations[name]


def _messages(published: Event, destinations: list[dict[str, Any]]) -> list[TopicMessage]:
    """Return an event as a message for each topic that gets events of its type."""
    name, text = published["eventType"], json.dumps(published)
    event_type = _MATCHING.get(name, name.upper())
    return [
        TopicMessage(destination["SnsDestination"]["TopicArn"], text)
        for destination in destinations
        if event_type in destination["MatchingEventTypes"]
    ]


def ses_error(status: int, code: str, message: str) -> Reply:
    """Return an error response in the form of SES: the SDKs read the code from a header."""
    return json_reply(status, {"message": message}, {"x-amzn-ErrorType": code})
