"""The functions of a mail stage in crash tests, with AWS between them on a virtual clock."""

import json
import math
import os
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

from mailroom.aws.dynamo_values import image_of
from mailroom.budget import Budget
from mailroom.channels.contracts import CONTRACTS
from mailroom.channels.mail.rendering import MailRenderer
from mailroom.content.templates import Templates
from mailroom.delivery.delivery import to_people
from mailroom.delivery.worker import Worker
from mailroom.dispatch.dispatcher import Dispatcher, Validator
from mailroom.dispatch.release import Lease, Release, _name_of
from mailroom.environment import LineSettings, OtherProvider, SesSender
from mailroom.http.url_policy import UrlPolicy
from mailroom.ledger.contents import Contents
from mailroom.ledger.observer import observe
from mailroom.ledger.run_states import RunStates
from mailroom.ledger.waits import AHEAD_SECONDS, OF_RUNS, Waits
from mailroom.message.message import DEFAULT_TEMPLATE, Key, Reference
from mailroom.providers.resend.sender import ResendMail
from mailroom.providers.ses.sender import SesMail
from mailroom.recipients.choices import Suppressions
from tests.support import ROOT
from tests.support.faults.base import (
    FUNCTION_SECONDS,
    KEYS,
    LEASE,
    BaseWorld,
    sender_settings,
)
from tests.support.faults.outside import Ses, Stopped
from tests.support.faults.resend_mail import Resend
from tests.support.tables import create_ledger as create_ledger
from tests.support.tables import create_table as create_table
from tests.support.told import ses_event
from tests.support.unit.unsubscribing import links

MAIL, BULK, FALLBACK = "https://sqs/mail", "https://sqs/mail-bulk", "https://sqs/mail-fallback"
AFTER_TRIES, AFTER_SECONDS = 3, 120
"""Tries, and seconds from the first, after which a mail goes to the fallback."""
LINE = "line#mail"
MINUTE, HOUR = 60, 3600
CALLS = (
    *("update_item", "get_item", "batch_get_item"),
    *("batch_write_item", "batch_execute_statement", "transact_write_items"),
)
"""DynamoDB calls at which a test can stop a function."""
TEMPLATES = Path(os.path.relpath(ROOT / "templates" / "mail"))
"""Folder of the templates. Its path is relative to the current folder, as in a bundle, so a process compiles
each template once."""


@cache
def _templates(folder: Path) -> Templates:
    """Return the templates in a folder. The default template has been read."""
    templates = Templates(folder)
    templates.used(DEFAULT_TEMPLATE)
    return templates


_templates(TEMPLATES)  # now, because a test may change the current folder

Item = dict[str, Any]
OnUnknown = Literal["resend", "hold"]


def mail(name: str, **attributes: Any) -> Item:
    """Return a valid mail. Its address starts with its id, which chooses SES's response."""
    about = {"email": f"{name}@example.com", "first_name": "Ada", "last_name": "Lovelace"}
    return {"id": name, "event_type": "mail", **about, **attributes}


class World(BaseWorld):
    """A mailbox with the functions and queues of mail."""

    def __init__(
        self, on_unknown: OnUnknown = "resend", *, keyed: bool = False, fallback: bool = False
    ) -> None:
        """`keyed`: the provider is Resend instead of SES. `fallback`: the other one of the two sends what the
        provider does not."""
        super().__init__(*KEYS, calls=CALLS)
        self.ses = Ses(self.clock)
        self.resend = Resend(self.clock) if keyed or fallback else None
        self._keyed, self._fallback = keyed, fallback
        self.when_day_used_up = False
        self.on_unknown = on_unknown
        self.reachable: Item = {}
        """The senders' setting of allowed recipients; {} allows everybody."""
        self.pace = 0.0
        """Seconds between two submits of a worker."""
        self.day: Item = {}
        """The senders' setting of the daily limit; {} means no limit."""
        self.channels: tuple[str, ...] = ("mail",)
        """Channels in the settings; () after the channel was removed."""
        self.runs_table = "runs"
        """Name of the table of campaign runs."""
        self._released_at = -math.inf
        self._started: list[Item] = []
        self._reported = 0
        self.put_at = self.clock.now
        self.suppressions = Suppressions(self.watched, "suppressions", self.clock)
        # Writes of other functions are not counted as calls of this one.
        self._feedback = self.ledger_of(self.dynamodb, lease=0)
        self.waits = Waits(self.watched, "ledger", 1e6, self.clock)
        self.contents = Contents(self.watched, "contents")

    def put(self, *items: Item) -> None:
        """Put items like producers. They are stored, so that a test can read them later."""
        self.items, self.put_at = list(items), self.clock.now
        for item in items:
            self.dynamodb.put_item(TableName="mailbox", Item=image_of(item))

    def take_back(self, name: str) -> None:
        """Delete a producer's item."""
        key: Any = {"id": {"S": name}, "event_type": {"S": "mail"}}
        self.dynamodb.delete_item(TableName="mailbox", Key=key)

    def enqueue(self, *bodies: Item | str, url: str = MAIL) -> None:
        """Put messages directly into the queue of a lane."""
        for body in bodies:
            self.queues.put(url, body if isinstance(body, str) else json.dumps(body))

    def worker(self, url: str = MAIL) -> Worker:
        """Return the worker of a new process for the queue of a lane."""
        settings = SesSender(
            **sender_settings("mail", url, pace_seconds=self.pace, on_unknown=self.on_unknown),
            suppressions_table="suppressions",
            preferences_table="preferences",
            unsubscribe_url="https://api.example.com/unsubscribe",
            unsubscribe_secret_arn="arn:unsubscribe",
            mail_senders=["no-reply@example.com"],
            configuration_set="mailroom",
            max_attachment_bytes=1000,
            **self.reachable,
            contents_table="contents",
            runs_table=self.runs_table,
            bulk=url == BULK,
            other_provider=self._other(url),
            **self.day,
        )
        adapter = self._adapter(settings, by_resend=self._keyed != (url == FALLBACK))
        tools = self.tools(settings)
        return Worker(settings.queue_url, tools, to_people(settings, adapter, tools))

    def _other(self, url: str) -> OtherProvider | None:
        if not self._fallback:
            return None
        if url == FALLBACK:
            return OtherProvider(name="resend" if self._keyed else "ses", queue_url=MAIL)
        return OtherProvider(
            name="ses" if self._keyed else "resend",
            queue_url=FALLBACK,
            after_tries=AFTER_TRIES,
            after_seconds=AFTER_SECONDS,
            when_day_used_up=self.when_day_used_up,
        )

    def resend_adapter(self) -> ResendMail:
        """Return the adapter of Resend."""
        api = self.outside.watch(self.resend, "submit")
        return ResendMail(lambda: api, self._renderer(), "payloads")

    def _renderer(self) -> MailRenderer:
        return MailRenderer(
            _templates(TEMPLATES),
            self.payloads,
            senders=["no-reply@example.com"],
            max_attachment_bytes=1000,
            links=links(),
        )

    def _adapter(self, settings: SesSender, *, by_resend: bool) -> Any:
        if by_resend:
            return self.resend_adapter()
        renderer = self._renderer()
        return SesMail(self.outside.watch(self.ses, "send_email"), renderer, settings.configuration_set)

    def dispatcher(self) -> Dispatcher:
        """Return the dispatcher of a new process."""
        routes = {name: {"normal": MAIL, "bulk": BULK} for name in self.channels}
        return Dispatcher(
            routes,
            Validator(CONTRACTS, routes, payloads=self.payloads, callbacks=UrlPolicy(), clock=self.clock),
            ledger=self.ledger,
            waits=self.waits,
            sqs=self.sqs,
            clock=self.clock,
        )

    def releaser(self) -> Release:
        """Return the `release` function of a new process."""
        watched, per_day = self.suppressions.client, self.day.get("per_day", ())
        line = LineSettings(1 / self.pace if self.pace else 1000, per_day, self.day.get("reserve", 0))
        return Release(
            self.dispatcher(),
            self.waits,
            self.contents,
            watched,
            "mailbox",
            self.ledger,
            Lease(watched, "budgets", LEASE, self.clock),
            dict.fromkeys(self.channels, line),
            RunStates(watched, self.runs_table, self.clock),
            partial(self.outside.call, "invoke", self._invoke),
            self.clock,
        )

    def release(self) -> None:
        """Handle the event that a rule sends each minute, and then the events with which `release` invokes
        itself.

        A crash ends one invocation.
        """
        self._started = []
        self._release({"parts": "all"})
        for event in self._started:
            self.round(_name_of(event))
        self._released_at = self.clock.now

    def _invoke(self, Payload: bytes) -> None:  # noqa: N803 - the name of boto3
        self._started.append(json.loads(Payload))

    def round(self, part: str) -> None:
        """Run one round of `release`."""
        kind, *names = part.split("#")
        match kind:
            case "line":
                self._release({"line": names[0]})
            case "removed":
                self._release({"removed": names[0], "shard": int(names[1])})
            case _:
                self._release({"shard": int(names[0])})

    def _release(self, event: Item) -> None:
        with suppress(Stopped):
            self.releaser().handle(event, lambda: int(FUNCTION_SECONDS * 1000))

    def parts(self) -> dict[str, float]:
        """Return the shards and the line with work, and when it is due.

        A limit may change, so a line is due every four hours at least.
        """
        parts: dict[str, float] = {}
        room_at = min(self.budget().room().again, self._released_at + 4 * HOUR)
        for item in self.dynamodb.tables["ledger"].items.values():
            if "waits_in" in item:
                name, at = item["waits_in"]["S"], float(item["waits_at"]["N"]) - AHEAD_SECONDS
                if name.startswith(LINE):
                    name, at = LINE, room_at
                if name.startswith(OF_RUNS):
                    name, at = LINE, self.put_at
                parts[name] = min(at, parts.get(name, math.inf))
        if LINE not in parts and self.budget().line().at < math.inf:
            parts[LINE] = self.clock.now
        return parts

    def budget(self) -> Budget:
        per_day = self.day.get("per_day", (("0001-01-01", 10**12),))
        return Budget(self.dynamodb, "budgets", "mail", per_day, self.day.get("reserve", 0), self.clock)

    def next_due(self) -> float | None:
        """Return the time of the next step, or None if no message waits and every queue is empty."""
        times = [max(at, self._released_at + MINUTE) for at in self.parts().values()]
        visible = self.queues.next_visible()
        return min([*times, *([] if visible is None else [visible])], default=None)

    def stream(self) -> None:
        """Invoke dispatch from the mailbox's stream, repeatedly until the batch succeeds."""
        items = self.items
        while items:
            entries = {str(at): item for at, item in enumerate(items)}
            try:
                failed = self.dispatcher().dispatch(entries.items(), dict.fromkeys(entries, self.put_at))
            except Stopped:
                continue
            items = items[min(map(int, failed)) :] if failed else []

    def deliver(self, url: str = MAIL) -> None:
        """Run one invocation of the sender of a queue."""
        self.invoke(url, lambda: self.worker(url).handle)

    def settle(self, between: Callable[[], None] = lambda: None, until: float = math.inf) -> None:
        """Deliver, release and let time pass, until no message waits and every queue is empty, or until
        `until`.
        """
        for _ in range(4000):
            due = self.next_due()
            if due is None or due > until:
                return
            self.clock.now = max(self.clock.now, due)
            self.step()
            between()
        raise AssertionError(f"not settled: {self.queues.messages}, {self.parts()}")

    def step(self) -> None:
        """Run the steps that are due now."""
        if self.clock.now >= self._released_at + MINUTE and self.parts():
            self.release()
        for url in (MAIL, BULK, FALLBACK):
            self.deliver(url)

    def send_events(self) -> None:
        """Record the provider's events about the mails that it has accepted since the last call."""
        references = self.accepted_references()
        for each in references[self._reported :]:
            observe(self._feedback, [ses_event(Key(each.id, "mail"), "sent", attempt=each.attempt)])
        self._reported = len(references)

    def accepted_ids(self) -> list[str]:
        """Return the ids of the messages that the provider accepted, in order."""
        return [each.id for each in self.accepted_references()]

    def accepted_references(self) -> list[Reference]:
        """Return the messages that the provider accepted, in order, with the numbers of their attempts."""
        by_resend = self.resend.accepted if self.resend else []
        return [
            *(_reference(request) for request in self.ses.accepted),
            *(Reference.read(mail["headers"]["X-Correlation-ID"]) for mail in by_resend),
        ]

    def sends(self) -> Counter[str]:
        """Return how often the provider accepted each message."""
        return Counter(self.accepted_ids())

    def end(self, name: str) -> str:
        """Return a message's status, with the code of its error if it has one."""
        item = self.found(name)
        assert "completedAt" in item, f"{name} was lost: {item}"
        code = item.get("error", {}).get("code")
        return f"{item['status']}: {code}" if code else str(item["status"])


def _reference(request: Mapping[str, Any]) -> Reference:
    headers = {each["Name"]: each["Value"] for each in request["Content"]["Simple"]["Headers"]}
    return Reference.read(headers["X-Correlation-ID"])
