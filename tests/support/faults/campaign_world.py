"""Campaigns for crash tests: an audience, both queues and the tables, with one virtual clock."""

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from mailroom.aws.dynamo_values import image_of, plain
from mailroom.campaigns.audience import Fault, Found, Page, Recipient, Recipients
from mailroom.campaigns.collector import Collector
from mailroom.campaigns.composer import Composer
from mailroom.campaigns.definition import Composed, Definition, Module
from mailroom.campaigns.drafts import Drafter
from mailroom.campaigns.room import PageRoom
from mailroom.campaigns.runs import Run, Runs
from mailroom.channels.contracts import CONTRACTS
from mailroom.ledger.ledger import Ledger
from mailroom.mailbox import MailboxWriter
from mailroom.recipients.choices import Preferences
from tests.support.dynamodb import in_memory_client
from tests.support.faults.outside import Clock, Outside, Queues, Stopped
from tests.support.tables import create_table

FUNCTION_SECONDS = 60.0
LEASE, VISIBILITY = FUNCTION_SECONDS + 60, 6 * FUNCTION_SECONDS
MAX_RECEIVES = 8
COLLECT, AUDIENCE = "https://sqs/collect", "https://sqs/audience"
BULK = "https://sqs/mail-bulk"
AT = "2026-11-18T13:00:00Z"
RUN = "2026-11-18T13:00Z"
WEEKLY = Definition(
    "weekly",
    "mail",
    Module(),
    topic="news",
    attributes={"template": "default"},
    page_size=4,
    recipients_per_message=3,
)
TABLES = {
    "runs": ("campaign", "run"),
    "mailbox": ("id", "event_type"),
    "ledger": ("id", "event_type"),
    "preferences": ("recipient", "topic"),
}


def address(key: str) -> str:
    return f"{key}@example.com"


class People:
    """An audience of `count` numbered people.

    Each person whose number is in `bad` is a fault of the audience.
    """

    def __init__(self, count: int, bad: frozenset[int] = frozenset()) -> None:
        self.count = count
        self.bad = bad

    def page(self, page: Page) -> Found:
        start = page.cursor or 0
        numbers = range(start, min(start + page.size, self.count))
        people = [
            Recipient(f"p{at}", {"email": address(f"p{at}"), "first_name": "Ada", "last_name": "L"})
            for at in numbers
            if at not in self.bad
        ]
        faults = [Fault(f"line {at + 2}", "email", "is empty") for at in numbers if at in self.bad]
        end = start + page.size
        return Found(people, end if end < self.count else None, faults)


class Asking:
    """A campaign's module that records its calls. For chosen recipients it fails, or returns no message."""

    def __init__(self) -> None:
        self.fails: set[str] = set()
        self.leaves_out: set[str] = set()

    def compose(self, _definition: Definition, recipients: Recipients) -> Composed | None:
        if self.fails & set(recipients.keys):
            raise KeyError("followers")
        return {each.key: {"greeting": "hi"} for each in recipients if each.key not in self.leaves_out}


class CampaignWorld:
    """The functions of a campaign on simulated services.

    A crash ends one invocation and has no other effect.
    """

    def __init__(
        self, people: People | None = None, definition: Definition = WEEKLY, puts_at_once: int = 1
    ) -> None:
        self.puts_at_once = puts_at_once
        self.clock, self.outside = Clock(), Outside()
        self.queues = Queues(self.clock, VISIBILITY, MAX_RECEIVES)
        self.people, self.asking = people or People(10), Asking()
        self.milliseconds = int(FUNCTION_SECONDS * 1000)
        """Remaining time of an invocation of compose, at any moment of it."""
        self.definition = definition
        self.rooms: Mapping[str, PageRoom] = {}
        self.tallies: Any = None
        """Counters of outcomes, as in a stage with search."""
        self.dynamodb = in_memory_client()
        for table, keys in TABLES.items():
            create_table(self.dynamodb, table, *keys)
        self._watched = self.outside.watch(
            self.dynamodb, "update_item", "put_item", "get_item", "batch_get_item"
        )
        self._sqs = self.outside.watch(self.queues, "send_message_batch", "change_message_visibility_batch")
        self._people = self.outside.watch(self.people, "page")
        self._asking = self.outside.watch(self.asking, "compose")
        self.preferences = Preferences(self.dynamodb, "preferences", self.clock)
        self.runs = Runs(self.dynamodb, "runs", lease=LEASE, clock=self.clock)

    def speaks(self, module: Any) -> None:
        """Use this module for the campaign from now on."""
        self._asking = self.outside.watch(module, "compose")

    def start(self, **changes: str) -> None:
        """Put the message that a schedule or an operator sends to start the campaign."""
        self.queues.put(COLLECT, json.dumps({"campaign": "weekly", "scheduled_at": AT, **changes}))

    def collector(self) -> Collector:
        """Return the collector of a new process."""
        return Collector(
            {self.definition.name: self.definition},
            lambda _definition: self._people,
            Runs(self._watched, "runs", lease=LEASE, clock=self.clock),
            sqs=self._sqs,
            queue_url=COLLECT,
            audience_queue_url=AUDIENCE,
            rooms=self.rooms,
            tallies=self.tallies,
            clock=self.clock,
        )

    def composer(self) -> Composer:
        """Return the composer of a new process."""
        preferences = Preferences(self._watched, "preferences", self.clock)
        return Composer(
            {self.definition.name: self.definition},
            Drafter(self._asking, preferences, CONTRACTS),
            mailbox=MailboxWriter(self._watched, "mailbox", composes=True),
            ledger=Ledger(self._watched, "ledger", lease=LEASE, ttl=1e6, clock=self.clock),
            runs=Runs(self._watched, "runs", clock=self.clock),
            sqs=self._sqs,
            queue_url=AUDIENCE,
            queues={"mail": BULK},
            puts_at_once=self.puts_at_once,
            clock=self.clock,
        )

    def deliver(self, url: str, most: int = 10) -> None:
        """Run one invocation for a queue.

        After a crash, its records return at the end of their visibility timeout.
        """
        records = self.queues.receive(url, most)
        if not records:
            return
        try:
            event = {"Records": records}
            if url == COLLECT:
                response = self.collector().handle(event)
            else:
                response = self.composer().handle(event, lambda: self.milliseconds)
            self.queues.settle(url, records, response)
        except Stopped:
            return

    def settle(self) -> None:
        """Deliver, and let time pass, until both queues of campaigns are empty."""
        for _ in range(400):
            due = self.queues.next_visible(COLLECT, AUDIENCE)
            if due is None:
                return
            self.clock.now = max(self.clock.now, due)
            self.deliver(COLLECT, 1)
            self.deliver(AUDIENCE)
        raise AssertionError(f"not settled: {self.queues.messages}")

    def run(self) -> Run:
        """Return the run from its item."""
        found = self.runs.read("weekly", RUN)
        assert found is not None
        return found

    def mailbox(self) -> dict[str, dict[str, Any]]:
        """Return the mailbox's items by their recipient's key, or by run and key for another run."""
        return self._by_key("mailbox")

    def ledger(self) -> dict[str, dict[str, Any]]:
        """Return the ledger's items by their recipient's key."""
        return self._by_key("ledger")

    def _by_key(self, table: str) -> dict[str, dict[str, Any]]:
        """Return a table's items by their recipients' keys, which precede the last part of each id."""
        items = [plain(each) for each in self.dynamodb.scan(TableName=table)["Items"]]
        return {each["id"].removeprefix(f"weekly#{RUN}#").rpartition("#")[0]: each for each in items}

    def everybody(self) -> set[str]:
        """Return the keys of the audience."""
        return {f"p{at}" for at in range(self.people.count) if at not in self.people.bad}

    def item_of(self, key: str) -> dict[str, Any]:
        """Return the mailbox's item with the id that the run assigns to a person."""
        key_of_item = image_of({"id": self.run().id_of(key), "event_type": "mail"})
        return plain(self.dynamodb.get_item(TableName="mailbox", Key=key_of_item)["Item"])

    def calls(self) -> Mapping[str, int]:
        return Counter(self.outside.calls)

    def dead(self) -> int:
        return sum(map(len, self.queues.dead.values()))
