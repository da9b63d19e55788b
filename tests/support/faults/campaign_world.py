"""Campaigns for crash tests: an audience, both queues and the tables, with one virtual clock."""

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from mailroom.aws.dynamo_values import plain
from mailroom.campaigns.audience import Fault, Found, Page, Recipient, Recipients
from mailroom.campaigns.collector import Collector
from mailroom.campaigns.composer import Composer
from mailroom.campaigns.definition import Composed, Definition, Module
from mailroom.campaigns.drafts import Drafter
from mailroom.campaigns.room import PageRoom
from mailroom.campaigns.runs import Run, Runs
from mailroom.channels.contracts import CONTRACTS
from mailroom.mailbox import MailboxWriter
from mailroom.recipients.choices import Preferences
from tests.support.faults.base import FUNCTION_SECONDS, LEASE, VISIBILITY, BaseWorld, Item, Remaining
from tests.support.faults.outside import Queues

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
TABLES = ("runs", "mailbox", "preferences")
CALLS = ("update_item", "put_item", "get_item", "batch_get_item")
"""DynamoDB calls at which a test can stop a function of the campaign."""


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


class CampaignWorld(BaseWorld):
    """The functions of a campaign on simulated services."""

    def __init__(
        self, people: People | None = None, definition: Definition = WEEKLY, puts_at_once: int = 1
    ) -> None:
        super().__init__(*TABLES, calls=CALLS, queues=lambda clock: Queues(clock, VISIBILITY, MAX_RECEIVES))
        self.puts_at_once = puts_at_once
        self.people, self.asking = people or People(10), Asking()
        self.milliseconds = int(FUNCTION_SECONDS * 1000)
        """Remaining time of an invocation of compose, at any moment of it."""
        self.definition = definition
        self.rooms: Mapping[str, PageRoom] = {}
        self.tallies: Any = None
        """Counters of outcomes, as in a stage with search."""
        self._people = self.outside.watch(self.people, "page")
        self._asking = self.outside.watch(self.asking, "compose")
        self.preferences = Preferences(self.dynamodb, "preferences", self.clock)
        self.runs = Runs(self.dynamodb, "runs", lease=LEASE, clock=self.clock)

    def move_to(self, world: BaseWorld, client: Any) -> None:
        """Use the clock, queues and tables of another world. The campaign's functions call `client`."""
        self.clock, self.outside, self.queues, self.sqs = world.clock, world.outside, world.queues, world.sqs
        self.dynamodb, self.watched = world.dynamodb, self.outside.watch(client, *CALLS)
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
            Runs(self.watched, "runs", lease=LEASE, clock=self.clock),
            sqs=self.sqs,
            queue_url=COLLECT,
            audience_queue_url=AUDIENCE,
            rooms=self.rooms,
            tallies=self.tallies,
            clock=self.clock,
        )

    def composer(self) -> Composer:
        """Return the composer of a new process."""
        preferences = Preferences(self.watched, "preferences", self.clock)
        return Composer(
            {self.definition.name: self.definition},
            Drafter(self._asking, preferences, CONTRACTS),
            mailbox=MailboxWriter(self.watched, "mailbox", composes=True),
            ledger=self.ledger_of(self.watched),
            runs=Runs(self.watched, "runs", clock=self.clock),
            sqs=self.sqs,
            queue_url=AUDIENCE,
            queues={"mail": BULK},
            puts_at_once=self.puts_at_once,
            clock=self.clock,
        )

    def deliver(self, url: str, most: int = 10) -> None:
        """Run one invocation of the function of a queue."""
        collects = url == COLLECT
        self.invoke(url, lambda: self._collect if collects else self._compose, most)

    def _collect(self, event: Item, _remaining: Remaining) -> Item:
        return self.collector().handle(event)

    def _compose(self, event: Item, _remaining: Remaining) -> Item:
        return self.composer().handle(event, lambda: self.milliseconds)

    def settle(self) -> None:
        """Deliver, and let time pass, until both queues of campaigns are empty."""
        self.play_until_empty(self.deliver_both, COLLECT, AUDIENCE)

    def deliver_both(self) -> None:
        """Run one invocation for each queue of campaigns."""
        self.deliver(COLLECT, 1)
        self.deliver(AUDIENCE)

    def run(self) -> Run:
        """Return the run from its item."""
        found = self.runs.read("weekly", RUN)
        assert found is not None
        return found

    def mailbox(self) -> dict[str, dict[str, Any]]:
        """Return the mailbox's items by their recipient's key, or by run and key for another run."""
        return self._by_key("mailbox")

    def in_ledger(self) -> dict[str, dict[str, Any]]:
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
        item = self.item("mailbox", id=self.run().id_of(key), event_type="mail")
        assert item
        return item

    def calls(self) -> Mapping[str, int]:
        return Counter(self.outside.calls)

    def dead(self) -> int:
        return sum(map(len, self.queues.dead.values()))
