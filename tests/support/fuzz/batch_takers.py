"""The functions that receive records in batches, by name, for fuzz tests.

A bad record must not stop the other records of its batch, and must not get lost.
"""

import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from hypothesis import strategies as st
from msgspec import structs

from mailroom.aws.dynamo_values import image_of, plain
from mailroom.campaigns.queue_bodies import collect_body
from mailroom.channels.contracts import CONTRACTS
from mailroom.channels.fax.adapter import FaxAdapter
from mailroom.channels.fax.contract import Delivered, item_of
from mailroom.channels.fax.delivery import FaxDelivery
from mailroom.channels.fax.retry_mover import RetryMover
from mailroom.channels.mail.rendering import MailRenderer
from mailroom.channels.sms.adapter import SmsAdapter, text_delivery
from mailroom.channels.webhook.delivery import WebhookDelivery
from mailroom.content.payloads import Payloads
from mailroom.content.templates import Templates
from mailroom.dead_letters.inspector import DeadLetterInspector
from mailroom.delivery.delivery import to_people
from mailroom.delivery.worker import ChannelDelivery, Tools, Worker
from mailroom.dispatch.dispatcher import Dispatcher, Validator
from mailroom.dispatch.release import Lease, Release
from mailroom.environment import (
    FaxSender,
    FeedbackSettings,
    LineSettings,
    OutcomesSettings,
    SuppressingSender,
    WebhookSender,
)
from mailroom.errors import Invalid, Malformed
from mailroom.feedback.consumer import Feedback
from mailroom.http.url_policy import UrlPolicy
from mailroom.ledger.contents import Contents, Held
from mailroom.ledger.ledger import Ledger
from mailroom.ledger.run_states import RunStates
from mailroom.ledger.waits import DAY_USED_UP, Wait, Waits
from mailroom.message.message import decode, key_of
from mailroom.outcomes import EventBus, Outcomes
from mailroom.providers.ses.sender import SesMail
from mailroom.recipients.choices import Suppressions
from tests.support.faults.campaign_world import RUN, CampaignWorld, People
from tests.support.fuzz.inputs import bent, bodies
from tests.support.fuzz.parsers import CAMPAIGN, CHUNK, COMPOSED, EVENTS, RIGHT, TEMPLATED, NoObjects
from tests.support.unit import push, sms, unsubscribing
from tests.support.unit.api_requests import Api
from tests.support.unit.consequences import ledger_record
from tests.support.unit.events import failures, plenty, sqs_event
from tests.support.unit.fakes import never
from tests.support.unit.fax import FAX_SETTINGS, FakeLine, fax_body
from tests.support.unit.feedback_words import TOPICS
from tests.support.unit.post import SETTINGS, TABLES, tools_of
from tests.support.unit.shared import (
    BUCKET,
    BUDGETS,
    CONTENTS,
    LEDGER,
    MAILBOX,
    RUNS,
    SENDER,
    SUPPRESSIONS,
    TTL,
    Aws,
    FakeClock,
    Item,
    claimed,
    mail,
)
from tests.support.unit.shelf import OURS
from tests.support.unit.webhook_post import WEBHOOK_SETTINGS, callback
from tests.support.unit.webhooks import Wire, standard_webhooks
from tests.support.unjudged import others

GOOD = ("good-0", "good-2")
"""Ids of the valid records before and after the bad record."""


class Taking:
    """A model of SQS that accepts every message and stores the bodies by queue."""

    def __init__(self) -> None:
        self.sent: list[Item] = []

    def send_message_batch(self, *, QueueUrl: str, Entries: Sequence[Item]) -> Item:  # noqa: N803
        self.sent += [{**each, "QueueUrl": QueueUrl} for each in Entries]
        for each in Entries:
            each["MessageBody"].encode()
        return {}

    def change_message_visibility_batch(self, **_: Any) -> Item:
        return {}

    def get_queue_attributes(self, **_: Any) -> Item:
        return {}

    @property
    def bodies(self) -> list[Item]:
        """Return the bodies that were sent, parsed."""
        return [json.loads(each["MessageBody"]) for each in self.sent]


@dataclass(frozen=True)
class Ended:
    """The result of a batch: the ids of the finished valid records, whether the bad record was returned, and
    whether it left a trace if it was not."""

    done: set[str]
    good_back: bool
    back: bool
    kept: bool


Run = Callable[[Any], Ended]


@dataclass(frozen=True)
class Batch:
    """A function under test.

    `inputs` generates bad records; `open` returns a function that handles a bad record between two valid
    ones.
    """

    inputs: st.SearchStrategy[Any]
    open: Callable[[Aws], Run]


def _ended(aws: Aws, channel: str, back: Iterable[str], kept: bool) -> Ended:
    """Read the result from the ledger, in which each accepted message is recorded."""
    came = {*back}
    done = {id_ for id_ in GOOD if aws.item(id_, channel).get("status") in ("sent", "delivered")}
    return Ended(done, bool(came & {"r-0", "r-2"}), "r-1" in came, kept)


def _good(channel: str) -> list[str]:
    return [json.dumps({"id": id_, "event_type": channel, **RIGHT[channel]}) for id_ in GOOD]


def _between(good: Sequence[Any], bad: Any) -> list[Any]:
    return [good[0], bad, good[1]]


def _empty(aws: Aws) -> None:
    aws.dynamodb.empty()  # type: ignore[attr-defined]


# Dispatch receives items in the form of a stream of DynamoDB.


def _dispatcher(aws: Aws, sqs: Any, ledger: Ledger) -> Dispatcher:
    s3: Any = NoObjects()
    routes = {channel: {"normal": "https://sqs/q", "bulk": "https://sqs/b"} for channel in CONTRACTS}
    return Dispatcher(
        routes,
        Validator(CONTRACTS, routes, payloads=Payloads(s3, BUCKET), callbacks=UrlPolicy(), clock=FakeClock()),
        ledger=ledger,
        waits=Waits(aws.dynamodb, LEDGER, TTL, FakeClock()),
        sqs=sqs,
        clock=FakeClock(),
    )


def _ledger(aws: Aws, clock: FakeClock) -> Ledger:
    return Ledger(aws.dynamodb, LEDGER, lease=0, ttl=TTL, clock=clock)


def _held(item: Item) -> bool:
    """Return whether a table can store an item, so that its stream can contain the item."""
    try:
        image_of(item)
        key_of(item)
    except (Invalid, Malformed):
        return False
    return True


def _dispatch(aws: Aws) -> Run:
    def run(bad: Item) -> Ended:
        _empty(aws)
        sqs = Taking()
        items = [{"id": id_, "event_type": "mail", **RIGHT["mail"]} for id_ in GOOD]
        batch = [(f"r-{at}", plain(image_of(each))) for at, each in enumerate(_between(items, bad))]
        back = _dispatcher(aws, sqs, _ledger(aws, FakeClock())).dispatch(batch)
        done = {each["id"] for each in sqs.bodies} & {*GOOD}
        key = key_of(bad)
        queued = any(each.get("id") == key.id for each in sqs.bodies)
        kept = queued or bool(aws.item(key.id, key.event_type))
        # Items of a table are always complete; no content of an item may block its shard.
        return Ended(done, "r-0" in back or "r-2" in back, False, kept and "r-1" not in back)

    return run


def _release(aws: Aws) -> Run:
    def run(bad: str) -> Ended:
        _empty(aws)
        sqs, clock, dynamodb = Taking(), FakeClock(), aws.dynamodb
        waits, contents = Waits(dynamodb, LEDGER, TTL, clock), Contents(dynamodb, CONTENTS)
        good = [json.dumps({"id": id_}) for id_ in GOOD]
        for place, (id_, body) in enumerate(zip(_between(GOOD, "bad"), _between(good, bad), strict=True)):
            message = mail(id_, lane="bulk")
            contents.put([(Held(message.key, id_), body, 0)])
            wait = Wait(message, DAY_USED_UP, clock.now, id_, clock.now - 60 + place, lines_up=True)
            assert waits.hold([wait]) == [True]
        ledger = _ledger(aws, clock)
        release = Release(
            _dispatcher(aws, sqs, ledger),
            waits,
            contents,
            dynamodb,
            MAILBOX,
            ledger,
            Lease(dynamodb, BUDGETS, 75, clock),
            {"mail": LineSettings(per_second=10)},
            RunStates(dynamodb, "", clock),
            never,
            clock,
        )
        release.handle({"line": "mail"}, plenty)
        sent = [each["MessageBody"] for each in sqs.sent]
        done = {id_ for id_, body in zip(GOOD, good, strict=True) if body in sent}
        waiting = {id_ for id_ in (*GOOD, "bad") if "wait" in aws.item(id_)}
        return Ended(done, bool(waiting & {*GOOD}), "bad" in waiting, bad in sent)

    return run


# Senders: real adapters with clients that accept every message.


def _sender(
    channel: str, make: Callable[[Aws, FakeClock, Any], tuple[Tools, ChannelDelivery[Any]]]
) -> Callable[[Aws], Run]:
    def open_(aws: Aws) -> Run:
        def run(bad: str) -> Ended:
            _empty(aws)
            clock, sqs = FakeClock(), Taking()
            tools, delivery = make(aws, clock, sqs)
            worker = Worker("https://sqs/q", tools, delivery)
            event = sqs_event(*_between(_good(channel), bad))
            for record in event["Records"]:
                record["attributes"].pop("MessageGroupId", None)
            back = failures(worker.handle(event, lambda: 900_000))
            return _ended(aws, channel, back, _settled(aws, channel, bad, sqs))

        return run

    return open_


def _settled(aws: Aws, channel: str, body: str, sqs: Taking) -> bool:
    """Return whether the ledger has a status for a body's message, or the body is a callback without an
    item."""
    try:
        item = decode(body)
        key = key_of(item_of(item) if channel == "fax" else item)
    except Malformed:
        return False
    if channel == "webhook" and "webhook_id" in item:
        return True
    return bool(aws.item(key.id, key.event_type)) or bool(sqs.sent)


def _tools(aws: Aws, clock: FakeClock, sqs: Any, settings: Any) -> Tools:
    tools = tools_of(settings, aws, clock, sqs)
    s3: Any = NoObjects()
    return Tools(
        tools.ledger,
        Payloads(s3, BUCKET),
        tools.dynamodb,
        sqs,
        tools.pace,
        clock,
        clock.sleep,
        tools.jitter,
    )


def _mails(aws: Aws, clock: FakeClock, sqs: Any) -> tuple[Tools, ChannelDelivery[Any]]:
    settings = SuppressingSender(**{**SETTINGS, **TABLES, "runs_table": RUNS})
    tools = _tools(aws, clock, sqs, settings)
    accepted = itertools.count()
    client: Any = SimpleNamespace(send_email=lambda **_: {"MessageId": f"ses-{next(accepted)}"})
    renderer = MailRenderer(
        Templates(OURS),
        tools.payloads,
        senders=[SENDER],
        max_attachment_bytes=1000,
        links=unsubscribing.links(),
    )
    adapter = SesMail(client, renderer, "test")
    return tools, to_people(settings, adapter, tools)


def _texts(aws: Aws, clock: FakeClock, sqs: Any) -> tuple[Tools, ChannelDelivery[Any]]:
    settings = sms.sms_settings(templates=str(OURS.parent / "sms"))
    tools = _tools(aws, clock, sqs, settings)
    provider = sms.FakeSms()
    adapter = SmsAdapter(settings, lambda: provider, _presigning(tools.payloads))
    return tools, text_delivery(settings, adapter, tools)


def _presigning(payloads: Payloads) -> Payloads:
    """Return a URL for every object of the bucket."""
    payloads.presigned = lambda field, ref, seconds: f"https://s3/{len(payloads.key(field, ref))}"  # type: ignore[method-assign]
    return payloads


def _pushes(aws: Aws, clock: FakeClock, sqs: Any) -> tuple[Tools, ChannelDelivery[Any]]:
    settings = SuppressingSender(**{**SETTINGS, **TABLES, "channel": "push"})
    tools = _tools(aws, clock, sqs, settings)
    arn = RIGHT["push"]["to"]
    adapter = push.push_adapter(push.Sns(), topics=[arn])
    return tools, to_people(settings, adapter, tools)


def _faxes(aws: Aws, clock: FakeClock, sqs: Any) -> tuple[Tools, ChannelDelivery[Any]]:
    settings = FaxSender(**{**FAX_SETTINGS, "fax_provider": "fake"})
    tools = _tools(aws, clock, sqs, settings)
    line = FakeLine(Delivered())
    return tools, FaxDelivery(
        settings, FaxAdapter(settings, lambda: line, _presigning(tools.payloads)), tools
    )


def _webhooks(aws: Aws, clock: FakeClock, sqs: Any) -> tuple[Tools, ChannelDelivery[Any]]:
    settings = WebhookSender(**WEBHOOK_SETTINGS)
    tools = _tools(aws, clock, sqs, settings)
    return tools, WebhookDelivery(settings, standard_webhooks(Wire(200), clock), tools)


# Inputs from providers' events, changes of the ledger and dead letters.


def _feedback(aws: Aws) -> Run:
    from tests.support.bodies import TOPIC, by_sns, ses_body

    def run(bad: str) -> Ended:
        _empty(aws)
        clock, sqs = FakeClock(), Taking()
        client: Any = sqs
        settings = FeedbackSettings(
            ledger_table=LEDGER,
            ledger_ttl_seconds=TTL,
            payload_bucket=BUCKET,
            queue_url="https://sqs/feedback",
            suppressions_table=SUPPRESSIONS,
            feedback_topics=[TOPIC, *TOPICS],
            default_region="US",
        )
        ledger = Ledger(aws.dynamodb, LEDGER, lease=120, ttl=TTL, clock=clock)
        for id_ in ("m-1", *GOOD):
            ledger.complete(claimed(ledger, mail(id_, to="ada@example.com")), "ses", f"ses-{id_}")
        list_ = Suppressions(aws.dynamodb, SUPPRESSIONS, clock)
        good = [by_sns(ses_body("Delivery", id_, second=2)) for id_ in GOOD]
        event = sqs_event(*_between(good, bad))
        back = failures(Feedback(settings, ledger, list_, client).handle(event, plenty))
        done = {id_ for id_ in GOOD if aws.item(id_)["status"] == "delivered"}
        for each in list_.listed():  # Every sender can read a marked message.
            Suppressions_readable(each)
        return Ended(done, bool({*back} & {"r-0", "r-2"}), "r-1" in back, _is_json(bad))

    return run


def Suppressions_readable(found: Any) -> None:  # noqa: N802
    from mailroom.recipients import choices

    choices._suppressed(found)


def _is_json(body: str) -> bool:
    """Return whether a body is JSON.

    Other bodies are returned to the queue; a JSON body may be an event without effect.
    """
    from mailroom.feedback.reader import read
    from tests.support.unit.feedback_words import TOPICS as BELIEVED

    try:
        read(body, BELIEVED)
    except Malformed:
        return False
    return True


FAX_ROW: Item = {
    "id": "f-1",
    "event_type": "fax",
    "status": "sending",
    "to": "+16175551234",
    "pdf_url": "https://files.example.com/a.pdf",
    "callback_url": "https://hooks.example.com/a",
    "attempts": 1,
    "updatedAt": "2026-11-21T09:00:00.000Z",
}


def _outcomes(aws: Aws) -> Run:
    def run(bad: Item) -> Ended:
        sqs: Any = Taking()
        put: list[Item] = []
        events: Any = SimpleNamespace(
            put_events=lambda Entries: {"Entries": [put.append(each) or {} for each in Entries]}  # type: ignore[func-returns-value]  # noqa: N803
        )
        settings = OutcomesSettings(
            webhook_queue_url="https://sqs/webhook",
            retry_queue_url="https://sqs/retry",
            max_attempts=20,
            retry_delay_seconds=600,
            channels=["mail", "fax"],
            event_bus="bus",
            event_source="mailroom",
        )
        good = [
            ledger_record(at, old={**FAX_ROW, "id": id_}, status="failed", attempts=1)
            for at, id_ in zip((100, 102), GOOD, strict=True)
        ]
        _empty(aws)
        _ledger(aws, FakeClock()).refuse(bad, "invalid", "to: no")
        (row,) = aws.dynamodb.scan(TableName=LEDGER)["Items"]
        bad_record = ledger_record(101)
        bad_record["dynamodb"] |= {"NewImage": row, "OldImage": {}}
        back = Outcomes(settings, sqs, FakeClock(), EventBus(events, settings)).handle(
            _between(good, bad_record)
        )
        told = {each["payload"].get("fax_id") for each in sqs.bodies if "payload" in each}
        on_bus = {json.loads(each["Detail"])["id"] for each in put}
        return Ended(told & on_bus & {*GOOD}, bool(back & {"100", "102"}), "101" in back, True)

    return run


class DeadLetters:
    """A model of SQS with one dead-letter queue, whose messages all come in one receive."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._left = [*enumerate(texts)]

    def get_queue_attributes(self, **_: Any) -> Item:
        return {"Attributes": {"ApproximateNumberOfMessages": str(len(self._left))}}

    def receive_message(self, **_: Any) -> Item:
        received, self._left = self._left, []
        attributes = {"ApproximateReceiveCount": "4", "SentTimestamp": "1795251600000"}
        return {
            "Messages": [
                {"MessageId": f"r-{at}", "ReceiptHandle": str(at), "Body": text, "Attributes": attributes}
                for at, text in received
            ]
        }

    def change_message_visibility_batch(self, **_: Any) -> Item:
        return {}


def _dead_letters(queue: str) -> Callable[[Aws], Run]:
    def open_(aws: Aws) -> Run:
        def run(bad: str) -> Ended:
            _empty(aws)
            ledger = _ledger(aws, FakeClock())
            for id_ in GOOD:
                claimed(ledger, mail(id_))
            sqs: Any = DeadLetters(_between(_good("mail"), bad))
            seen = DeadLetterInspector({queue: "https://sqs/dlq"}, ledger, sqs, long_poll=0).handle(plenty)
            # Events do not mark their messages.
            marks = queue != "feedback-dlq"
            done = {id_ for id_ in GOOD if marks == ("dead_lettered_at" in aws.item(id_, "mail"))}
            return Ended(done, False, False, seen == {queue: 3})

        return run

    return open_


def _mover(aws: Aws) -> Run:
    def run(bad: str) -> Ended:
        sqs: Any = Taking()
        good = [json.dumps(fax_body(fax_id=id_)) for id_ in GOOD]
        event = sqs_event(*_between(good, bad))
        back = failures(RetryMover(sqs, "https://sqs/r", "https://sqs/f", FakeClock()).handle(event))
        done = {each.get("id") for each in sqs.bodies} & {*GOOD}
        return Ended(done, bool({*back} & {"r-0", "r-2"}), "r-1" in back, len(sqs.sent) == 3)

    return run


def _compose(_aws: Aws) -> Run:
    def run(bad: str) -> Ended:
        world = CampaignWorld()
        world.runs.begin("weekly", RUN, "s-1", CHUNK["scheduled_at"])
        found = world.runs.read("weekly", RUN)
        assert found is not None
        chunk = {**CHUNK, "run": RUN, "start": found.valid_from}
        people = [
            {**chunk, "recipients": [{"key": id_, "attributes": {"email": "a@b.example"}}]} for id_ in GOOD
        ]
        event = sqs_event(*_between([json.dumps(each) for each in people], bad))
        composer = structs.replace(world.composer(), sqs=Taking())
        with others():  # The tables have the names that the crash tests use.
            back = failures(composer.handle(event, plenty))
        return Ended(world.mailbox().keys() & {*GOOD}, bool({*back} & {"r-0", "r-2"}), "r-1" in back, True)

    return run


def _collect(_aws: Aws) -> Run:
    def run(bad: str) -> Ended:
        world = CampaignWorld(People(2))
        good = [
            json.dumps({"campaign": "weekly", "scheduled_at": CHUNK["scheduled_at"], "run": id_})
            for id_ in GOOD
        ]
        sqs = Taking()
        collector = structs.replace(world.collector(), sqs=sqs)
        with others():  # The tables have the names that the crash tests use.
            back = failures(collector.handle(sqs_event(*_between(good, bad))))
        done = {each["run"] for each in sqs.bodies if "recipients" in each} & {*GOOD}
        return Ended(done, bool({*back} & {"r-0", "r-2"}), "r-1" in back, _is_page(bad))

    return run


def _is_page(body: str) -> bool:
    try:
        collect_body(body)
    except Malformed:
        return False
    return True


def _api(aws: Aws) -> Run:
    api = Api(FakeClock())

    def run(bad: str) -> Ended:
        _empty(aws)
        good = _good("mail")
        text = f'{{"messages": [{good[0]}, {bad}, {good[1]}]}}'
        try:
            decode(text)
        # The bad entry makes the whole body invalid JSON, so the API rejects the request and stores no entry
        # of it.
        except Malformed:
            return Ended({*GOOD}, False, True, True)
        answer = api.post(text)
        results = [each["result"] for each in answer.json.get("messages", ())]
        done = {id_ for id_ in GOOD if aws.item(id_, "mail", MAILBOX)}
        return Ended(done, False, False, len(results) == 3 and "failed" not in results)

    return run


def _senders(channel: str) -> st.SearchStrategy[str]:
    own = [{"id": "m-1", "event_type": channel, **RIGHT[channel]}]
    own += [each for each in TEMPLATED if each["event_type"] == channel]
    own += [COMPOSED] if channel == "mail" else []
    own += [callback()] if channel == "webhook" else []
    own += [fax_body()] if channel == "fax" else []
    return bodies(own)


def _any_item() -> st.SearchStrategy[Item]:
    items = [{"id": "m-1", "event_type": name, **item} for name, item in RIGHT.items()]
    later = {**items[0], "send_at": "2026-12-01T09:00:00Z"}
    return bent([*items, later, COMPOSED, *TEMPLATED]).filter(_held)


BATCHES: Mapping[str, Batch] = {
    "dispatch": Batch(_any_item(), _dispatch),
    "release": Batch(_senders("mail"), _release),
    "send-mail": Batch(_senders("mail"), _sender("mail", _mails)),
    "send-sms": Batch(_senders("sms"), _sender("sms", _texts)),
    "send-push": Batch(_senders("push"), _sender("push", _pushes)),
    "send-fax": Batch(_senders("fax"), _sender("fax", _faxes)),
    "send-webhook": Batch(_senders("webhook"), _sender("webhook", _webhooks)),
    "retry-fax": Batch(_senders("fax"), _mover),
    "feedback": Batch(bodies(EVENTS), _feedback),
    "outcomes": Batch(_any_item(), _outcomes),
    "dead-letters, mail": Batch(_senders("mail"), _dead_letters("mail-dlq")),
    "dead-letters, webhook": Batch(_senders("webhook"), _dead_letters("webhook-dlq")),
    "dead-letters, feedback": Batch(bodies(EVENTS), _dead_letters("feedback-dlq")),
    "compose": Batch(bodies([CHUNK]), _compose),
    "collect": Batch(bodies(CAMPAIGN), _collect),
    "messages-api": Batch(_senders("mail"), _api),
}
