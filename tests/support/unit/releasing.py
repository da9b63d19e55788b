"""Messages that wait, and the rounds of `release` that hand them over."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from msgspec import Struct, field

from mailroom.budget import Budget
from mailroom.channels.mail.contract import Mail
from mailroom.dispatch.dispatcher import Dispatcher
from mailroom.dispatch.release import Lease, Release
from mailroom.environment import LineSettings
from mailroom.ledger.contents import Contents, Held
from mailroom.ledger.ledger import Ledger
from mailroom.ledger.run_states import RunStates
from mailroom.ledger.waits import DAY_USED_UP, SEND_AT, SHARDS, Wait, Waits
from mailroom.message.message import Message, encode
from mailroom.message.window import Window
from tests.support.unit.dispatching import dispatcher_of
from tests.support.unit.events import plenty
from tests.support.unit.fakes import Meddler
from tests.support.unit.shared import BUDGETS, CONTENTS, LEDGER, MAILBOX, NOW, RUNS, TTL, Aws, FakeClock, mail

ROUND_SECONDS = 75.0
"""Seconds of a round's lease."""
UNLIMITED = LineSettings(per_second=1000)


class Waiting(Struct):
    """Stage in which messages wait. `dynamodb` and `sqs` record the calls of `release`."""

    aws: Aws
    clock: FakeClock
    dynamodb: Meddler
    sqs: Meddler
    settings: LineSettings = UNLIMITED
    lanes: str = "both"
    channels: Sequence[str] = ("mail",)
    """Channels, all of which have the queues of mail."""
    invoke: Callable[..., Any] | None = None
    """Replaces Lambda's Invoke; by default, an invocation is recorded in `started`."""
    started: list[dict[str, Any]] = field(default_factory=list)
    """Events with which `release` has invoked itself."""

    def meddle(self, **changes: Callable[..., Any]) -> None:
        """Change calls of `release`, by their names."""
        self.dynamodb = Meddler(self.aws.dynamodb, **changes)
        self.sqs = Meddler(self.aws.sqs, **changes)

    def limit(self, recipients: int, *, per_second: float = 1000, reserve: float = 0) -> None:
        """Limit the day of the channel."""
        self.settings = LineSettings(per_second, (("0001-01-01", recipients),), reserve)

    @property
    def budget(self) -> Budget:
        settings = self.settings
        return Budget(
            self.aws.dynamodb, BUDGETS, "mail", settings.per_day, settings.reserve, clock=self.clock
        )

    @property
    def waits(self) -> Waits:
        return Waits(self.aws.dynamodb, LEDGER, TTL, self.clock)

    @property
    def contents(self) -> Contents:
        return Contents(self.aws.dynamodb, CONTENTS)

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.aws.dynamodb, LEDGER, lease=0, ttl=TTL, clock=self.clock)

    def hold(
        self,
        message: Message | str,
        reason: str,
        due: float,
        version: str = "",
        *,
        put_at: float = NOW,
        window: Window | None = None,
        lines_up: bool = False,
    ) -> bool:
        """Let a message wait, as its worker or `dispatch` does."""
        message = mail(message) if isinstance(message, str) else message
        version = version or f"wait of {message.id}"
        wait = Wait(message, reason, due, version, put_at, window, lines_up)
        if reason != SEND_AT:
            self.contents.put([(Held(message.key, version), encode(message.variables), wait.ends)])
        return self.waits.hold([wait])[0]

    def line_up(self, *messages: str | Mail, window: Window | None = None, **attributes: Any) -> None:
        """Let messages of bulk wait for the day. They were put one after the other, a second apart, and they
        join the line in a different order. `messages` are messages, or ids of messages with `attributes`."""
        joining = [
            mail(message, lane="bulk", **attributes) if isinstance(message, str) else message
            for message in messages
        ]
        waits = [
            Wait(
                *(message, DAY_USED_UP, self.clock.now, f"wait of {message.id}"),
                put_at=NOW - 1000 + place,
                window=window,
                lines_up=True,
                new=True,
            )
            for place, message in enumerate(joining)
        ]
        self.contents.put(
            [
                (Held(wait.message.key, wait.version), encode(wait.message.variables), wait.ends)
                for wait in waits
            ]
        )
        assert all(self.waits.hold(waits[::-1]))
        self.budget.join(NOW - 1000)

    def dispatcher(self) -> Dispatcher:
        clients: dict[str, Any] = {"sqs": self.sqs, "dynamodb": self.dynamodb}
        return dispatcher_of(self.aws, self.clock, **clients, lanes=self.lanes, channels=self.channels)

    def release(self) -> Release:
        database: Any = self.dynamodb
        return Release(
            self.dispatcher(),
            Waits(database, LEDGER, TTL, self.clock),
            Contents(database, CONTENTS),
            database,
            MAILBOX,
            Ledger(database, LEDGER, lease=0, ttl=TTL, clock=self.clock),
            Lease(database, BUDGETS, ROUND_SECONDS, self.clock),
            dict.fromkeys(self.channels, self.settings),
            RunStates(database, RUNS, self.clock),
            self.invoke or self._record,
            self.clock,
        )

    def _record(self, *, Payload: bytes) -> None:  # noqa: N803 - the name of boto3
        self.started.append(json.loads(Payload))

    def release_minute(self, remaining: Callable[[], int] = plenty) -> list[dict[str, Any]]:
        """Handle the event of the rule and then the events with which it invokes the function, and return
        these."""
        self.started.clear()
        self.release().handle({"parts": "all"}, remaining)
        events = [*self.started]
        for event in events:
            self.release().handle(event, remaining)
        assert self.started == events, "only the event of the rule starts rounds"
        return events

    def release_due(self, remaining: Callable[[], int] = plenty) -> None:
        """Run one round of each shard with due messages."""
        for shard in range(SHARDS):
            self.release().handle({"shard": shard}, remaining)

    def release_line(self, remaining: Callable[[], int] = plenty) -> None:
        """Run one round of the channel's line."""
        self.release().handle({"line": "mail"}, remaining)

    @property
    def sent(self) -> list[Mapping[str, Any]]:
        """The entries that SQS was given."""
        calls = [call for name, call in self.sqs.calls if name == "send_message_batch"]
        return [entry for call in calls for entry in call["Entries"]]

    @property
    def marked(self) -> Sequence[str]:
        """The ids of the messages whose mark stands, in no order."""
        items = self.aws.dynamodb.scan(TableName=LEDGER)["Items"]
        return sorted(item["id"]["S"] for item in items if "wait" in item)

    @property
    def held(self) -> Sequence[str]:
        """The versions of the contents that are stored."""
        items = self.aws.dynamodb.scan(TableName=CONTENTS)["Items"]
        return sorted(item["version"]["S"] for item in items)


@pytest.fixture
def waiting(aws: Aws, clock: FakeClock) -> Waiting:
    return Waiting(aws, clock, Meddler(aws.dynamodb), Meddler(aws.sqs))
