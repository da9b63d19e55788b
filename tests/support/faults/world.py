"""The functions in their world: what AWS would do between them, on a virtual clock."""

import base64
import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Literal

from mailroom.aws.dynamo_values import image_of, plain
from mailroom.channels.contracts import CONTRACTS
from mailroom.channels.mail.rendering import MailRenderer
from mailroom.channels.mail.resend import ResendMail
from mailroom.channels.mail.ses import SesMail
from mailroom.content.payloads import Payloads
from mailroom.content.templates import Templates
from mailroom.delivery.delivery import to_people
from mailroom.delivery.worker import Pace, Tools, Worker
from mailroom.dispatch.dispatcher import Dispatcher, ScheduleWriter, Validator
from mailroom.dispatch.due import DueDispatcher, Mailbox
from mailroom.environment import SesSender
from mailroom.http.url_policy import UrlPolicy
from mailroom.ledger.ledger import Ledger
from mailroom.ledger.observer import observe
from mailroom.message.message import Key, Reference
from mailroom.recipients.choices import Suppressions
from tests.support import ROOT
from tests.support.dynamodb import in_memory_client
from tests.support.faults.outside import NO_BUCKET, Clock, Outside, Queues, Scheduler, Ses, Stopped
from tests.support.faults.resend import Resend
from tests.support.told import told

FUNCTION_SECONDS = 60.0
LEASE = FUNCTION_SECONDS + 60
VISIBILITY = 6 * FUNCTION_SECONDS
MAX_RECEIVES = 12
MAIL, BULK, SCHEDULED = "https://sqs/mail", "https://sqs/mail-bulk", "https://sqs/scheduled"
TEMPLATES = ROOT / "templates" / "mail"

Item = dict[str, Any]
OnUnknown = Literal["resend", "hold"]


def mail(name: str, **attributes: Any) -> Item:
    """A good mail; its address starts with its id, which chooses what SES does."""
    about = {"email": f"{name}@example.com", "first_name": "Ada", "last_name": "Lovelace"}
    return {"id": name, "event_type": "mail", **about, **attributes}


class World:
    """One mailbox, its functions and their queues. A crash costs the invocation and nothing else."""

    def __init__(self, on_unknown: OnUnknown = "resend", *, keyed: bool = False) -> None:
        """`keyed`: the provider is Resend, in place of SES."""
        self.clock = Clock()
        self.outside = Outside()
        self.queues = Queues(self.clock, VISIBILITY, MAX_RECEIVES)
        self.ses = Ses(self.clock)
        self.resend = Resend(self.clock) if keyed else None
        self.scheduler = Scheduler(self.queues)
        self.on_unknown = on_unknown
        self.reachable: Item = {}
        """Whom the stage may reach, as its senders' settings say it; {}: everybody."""
        self.pace = 0.0
        """Seconds between two submits of a worker."""
        self.day: Item = {}
        """The limit of the day, as the senders' settings say it; {}: there is none."""
        self.dynamodb = in_memory_client()
        for table in ("ledger", "mailbox"):
            create_table(self.dynamodb, table)
        create_table(self.dynamodb, "suppressions", "recipient", "channel")
        create_table(self.dynamodb, "preferences", "recipient", "topic")
        create_table(self.dynamodb, "budgets", "name", None)
        watched = self.outside.watch(
            self.dynamodb, "update_item", "get_item", "batch_get_item", "batch_execute_statement"
        )
        self.ledger = Ledger(watched, "ledger", lease=LEASE, ttl=1e6, clock=self.clock)
        self.suppressions = Suppressions(watched, "suppressions", self.clock)
        # Another function's writes: they are no place for this one to stop.
        self._feedback = Ledger(self.dynamodb, "ledger", lease=0, ttl=1e6, clock=self.clock)
        self._mailbox = Mailbox(watched, "mailbox")
        self._sqs = self.outside.watch(self.queues, "send_message_batch", "change_message_visibility_batch")
        self._payloads = Payloads(NO_BUCKET, "payloads")

    def put(self, *items: Item) -> None:
        """What producers put, kept for those that are read back later."""
        self.items = list(items)
        for item in items:
            self.dynamodb.put_item(TableName="mailbox", Item=image_of(item))

    def take_back(self, name: str) -> None:
        """A producer deletes its item."""
        key: Any = {"id": {"S": name}, "event_type": {"S": "mail"}}
        self.dynamodb.delete_item(TableName="mailbox", Key=key)

    def enqueue(self, *bodies: Item | str, url: str = MAIL) -> None:
        """Messages that are in the queue of a lane already."""
        for body in bodies:
            self.queues.put(url, body if isinstance(body, str) else json.dumps(body))

    def worker(self, url: str = MAIL) -> Worker:
        """A new process's worker for the queue of a lane."""
        settings = SesSender(
            ledger_table="ledger",
            ledger_ttl_seconds=1e6,
            payload_bucket="payloads",
            channel="mail",
            queue_url=url,
            lease_seconds=LEASE,
            pace_seconds=self.pace,
            on_unknown=self.on_unknown,
            backoff_seconds=5,
            backoff_cap_seconds=300,
            misconfigured_seconds=20,
            submit_seconds=10,
            record_seconds=5,
            suppressions_table="suppressions",
            preferences_table="preferences",
            unsubscribe_url="https://api.example.com/unsubscribe",
            unsubscribe_secret_arn="arn:unsubscribe",
            mail_senders=["no-reply@example.com"],
            configuration_set="mailroom",
            max_attachment_bytes=1000,
            **self.reachable,
            **(self.day and {**self.day, "scheduled_queue_url": SCHEDULED, "bulk": url == BULK}),
        )
        adapter = self._adapter(settings)
        tools = Tools(
            self.ledger,
            self._payloads,
            self.suppressions.client,
            self._sqs,
            Pace.of(settings, self.clock, self.clock.sleep),
            self.clock,
            self.clock.sleep,
            lambda: 0.5,
        )
        return Worker(settings.queue_url, tools, to_people(settings, adapter, tools))

    def _adapter(self, settings: SesSender) -> Any:
        renderer = MailRenderer(
            Templates(TEMPLATES),
            self._payloads,
            senders=settings.mail_senders,
            max_attachment_bytes=settings.max_attachment_bytes,
        )
        if self.resend is not None:
            api = self.outside.watch(self.resend, "submit")
            return ResendMail(lambda: api, renderer, settings.payload_bucket)
        return SesMail(self.outside.watch(self.ses, "send_email"), renderer, settings.configuration_set)

    def dispatcher(self) -> Dispatcher:
        """A new process's dispatcher."""
        routes = {"mail": {"normal": MAIL, "bulk": BULK}}
        return Dispatcher(
            routes,
            Validator(CONTRACTS, routes, payloads=self._payloads, callbacks=UrlPolicy(), clock=self.clock),
            ledger=self.ledger,
            schedules=ScheduleWriter(
                self.outside.watch(self.scheduler, "create_schedule"),
                "mailroom",
                role_arn="role",
                target_arn=SCHEDULED,
                dead_letter_arn="dead",
            ),
            sqs=self._sqs,
            clock=self.clock,
        )

    def stream(self) -> None:
        """The mailbox's stream invokes dispatch, again and again, until the batch is through."""
        items = self.items
        while items:
            try:
                failed = self.dispatcher().dispatch((str(at), item) for at, item in enumerate(items))
            except Stopped:
                continue
            items = items[min(map(int, failed)) :] if failed else []

    def deliver(self, url: str = MAIL) -> None:
        """One invocation for a queue. A crash leaves its records to their visibility time-out."""
        records = self.queues.receive(url)
        if not records:
            return
        handlers: Mapping[str, Callable[[Any], dict[str, Any]]] = {
            **dict.fromkeys(
                (MAIL, BULK),
                lambda event: self.worker(url).handle(event, lambda: int(FUNCTION_SECONDS * 1000)),
            ),
            SCHEDULED: lambda event: DueDispatcher(
                self.dispatcher(), self._mailbox, self.ledger, self._sqs, SCHEDULED, self.clock
            ).handle(event),
        }
        try:
            self.queues.settle(url, records, handlers[url]({"Records": records}))
        except Stopped:
            return

    def settle(self, between: Callable[[], None] = lambda: None) -> None:
        """Deliver, and let time pass, until every queue is empty. With a limit of the day, schedules fire
        when they are due; else a test fires them."""
        for _ in range(400):
            times = [self.queues.next_visible(), self.scheduler.next_due() if self.day else None]
            due = min((each for each in times if each is not None), default=None)
            if due is None:
                return
            self.clock.now = max(self.clock.now, due)
            if self.day:
                self.scheduler.fire(self.clock.now)
            for url in (SCHEDULED, MAIL, BULK):
                self.deliver(url)
            between()
        raise AssertionError(f"not settled: {self.queues.messages}")

    def send_events(self) -> None:
        """The provider tells of every mail that it accepted, as feedback will record it."""
        for id_ in self.accepted_ids():
            observe(self._feedback, [told(Key(id_, "mail"), "sent")])

    def accepted_ids(self) -> list[str]:
        """The ids of the messages that the provider accepted, in order."""
        if self.resend is None:
            return [_id(request) for request in self.ses.accepted]
        return [Reference.read(mail["headers"]["X-Correlation-ID"]).id for mail in self.resend.accepted]

    def sends(self) -> Counter[str]:
        """How often the provider accepted each message."""
        return Counter(self.accepted_ids())

    def found(self, name: str) -> dict[str, Any]:
        """The ledger's item ({}: none)."""
        reply = self.dynamodb.get_item(
            TableName="ledger", Key={"id": {"S": name}, "event_type": {"S": "mail"}}
        )
        return plain(reply.get("Item", {}))

    def end(self, name: str) -> str:
        """A message's status, with the error's code where there is one."""
        item = self.found(name)
        assert "completedAt" in item, f"{name} was lost: {item}"
        code = item.get("error", {}).get("code")
        return f"{item['status']}: {code}" if code else str(item["status"])


def _id(request: Mapping[str, Any]) -> str:
    headers = {each["Name"]: each["Value"] for each in request["Content"]["Simple"]["Headers"]}
    text = headers["X-Correlation-ID"]
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()


def create_table(client: Any, table: str, partition: str = "id", sort: str | None = "event_type") -> None:
    keys = {partition: "HASH"} | ({} if sort is None else {sort: "RANGE"})
    client.create_table(
        TableName=table,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in keys.items()],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in keys],
    )
