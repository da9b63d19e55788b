"""The fax gateway for crash tests: fax queue, retry queue, ledger stream and provider, on a virtual clock."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from msgspec.structs import replace

from mailroom.channels.fax.adapter import FaxAdapter
from mailroom.channels.fax.delivery import FaxDelivery
from mailroom.channels.fax.retry_mover import RetryMover
from mailroom.delivery.worker import Worker
from mailroom.environment import FaxSender, OutcomesSettings
from mailroom.outcomes import EventBus, Outcomes
from mailroom_stacks.settings.fax import fax_rules
from mailroom_stacks.settings.times import Times
from tests.support.bounds import check_queue_call
from tests.support.faults.base import FUNCTION_SECONDS, MAX_RECEIVES, BaseWorld, sender_settings
from tests.support.faults.fax_network import FaxNetwork
from tests.support.faults.fifo import Fifo
from tests.support.faults.outside import Bus, Queues, Stopped
from tests.support.faults.stream import Recording
from tests.support.tables import check_releases

OURS, GIVEN_UP = "+12025550123", "+12025550124"
"""The stage's number, and a number that it had earlier."""
TIMES = Times(
    longest_fax=300,
    fax_timeout=int(FUNCTION_SECONDS),
    fax_submit=10,
    fax_record=5,
    fax_poll=10,
    # Small, so that a receive that only backs off can be shorter than one that polls the provider for the
    # fax.
    backoff_cap=40,
    provider_throttling=300,
)
RULES = fax_rules(TIMES)
LEASE, VISIBILITY = float(RULES.lease), float(RULES.visibility)
MAX_ATTEMPTS = 3
RETRY_SECONDS = 600.0
FAX, RETRY, WEBHOOK = "https://sqs/fax.fifo", "https://sqs/fax-retry", "https://sqs/webhook"
HERE, THERE = "+16175551234", "+49301234567"
Item = dict[str, Any]


def fated_fax(name: str, to: str = HERE, **changes: Any) -> Item:
    """Return the body that an upstream application writes. The PDF's name chooses the fax's fate."""
    return {
        "fax_id": name,
        "to": to,
        "pdf_url": f"https://files.example/{name}.pdf",
        "callback_url": "https://app.example/fax",
        **changes,
    }


class FaxWorld(BaseWorld):
    """A fax stage, in which a function that exceeds its timeout is killed."""

    channel = "fax"

    def __init__(self, max_attempts: int = MAX_ATTEMPTS) -> None:
        self.max_attempts = max_attempts
        self.changed: Item = {}
        """Changed settings, and the `account` at the provider, for processes that start from now on."""
        self._deadlines = [float("inf")]
        super().__init__(
            lease=LEASE,
            queues=lambda clock: Queues(clock, VISIBILITY, MAX_RECEIVES),
            time_is_up=lambda: self.clock() > self._deadlines[-1],
        )
        self.fifo = Fifo(self.clock, VISIBILITY, RULES.max_receives)
        self.network = FaxNetwork(self.clock)
        self.bus = Bus()
        self.stream = Recording(self.dynamodb)
        self.watched = self.outside.watch(self.stream, "update_item", "get_paginator")
        self.ledger = self.ledger_of(self.watched, LEASE)
        self.jitter = 0.5
        self._read = 0
        self.sqs = self.outside.watch(
            _Sqs(self.fifo, self.queues), "send_message_batch", "change_message_visibility_batch"
        )

    def put(self, *faxes: Item, group: str | None = None) -> None:
        """Write to the fax queue, as an upstream application does."""
        for each in faxes:
            self.fifo.put(json.dumps(each), group or each["to"], each["fax_id"])

    def worker(self) -> Worker:
        """Return the worker of a new process."""
        changed = {**self.changed}
        account = changed.pop("account", "ours")
        settings = replace(_fax_settings(self.max_attempts), **changed)
        there = self.network.provider(settings.fax_provider, account)
        provider: Any = self.outside.watch(there, "submit", "fetch", "find", "cancel")
        adapter = FaxAdapter(settings, lambda: provider, self.payloads)
        tools = self.tools(settings, lambda: self.jitter)
        return Worker(settings.queue_url, tools, FaxDelivery(settings, adapter, tools))

    def send_fax(self) -> bool:
        """Run one invocation of the sender. Returns False if no line is free or no fax waits."""
        records = self.fifo.receive()
        if not records:
            return False
        with self._invocation() as remaining:
            response = self.worker().handle({"Records": records}, remaining)
            if not response["batchItemFailures"]:
                self.fifo.delete(records[0]["receiptHandle"])
        check_releases(self.dynamodb)
        return True

    def move_retries(self) -> None:
        """Run one invocation of the retry mover."""
        records = self.queues.receive(RETRY)
        if records:
            with self._invocation():
                mover = RetryMover(self.sqs, RETRY, FAX, self.clock)
                self.queues.settle(RETRY, records, mover.handle({"Records": records}))

    def draw_consequences(self) -> None:
        """Invoke outcomes with the new records of the ledger's stream. Failed records are delivered again."""
        for _ in range(100):
            records = self.stream.records[self._read :]
            if not records:
                return
            with self._invocation():
                settings = OutcomesSettings(
                    webhook_queue_url=WEBHOOK,
                    retry_queue_url=RETRY,
                    max_attempts=self.max_attempts,
                    retry_delay_seconds=RETRY_SECONDS,
                    channels=["fax"],
                    event_bus="default",
                    event_source="mailroom.test",
                )
                bus = EventBus(self.outside.watch(self.bus, "put_events"), settings)
                failed = Outcomes(settings, self.sqs, self.clock, bus).handle(records)
                numbers = [each["dynamodb"]["SequenceNumber"] for each in records]
                self._read += min((numbers.index(each) for each in failed), default=len(records))
        raise AssertionError("outcomes fails again and again")

    def settle(self) -> None:
        """Run all functions, and let time pass, until no work is left."""
        for _ in range(600):
            self.draw_consequences()
            self.move_retries()
            if self.send_fax():
                continue
            times = [self.fifo.next_visible(), self._retries_visible()]
            due = [each for each in times if each is not None]
            if not due:
                self.draw_consequences()
                if self._retries_visible() is None:
                    return
                continue
            self.clock.now = max(self.clock.now, *[min(due)])
        raise AssertionError(f"not settled: {self.fifo.letters} {self.queues.messages[RETRY]}")

    def callbacks(self, name: str) -> list[tuple[str, str]]:
        """Return the callbacks about a fax, as status and text in order, for a receiver that ignores
        repeats."""
        told: dict[str, Item] = {}
        for message in self.queues.messages[WEBHOOK]:
            body = json.loads(message.body)
            if body["id"] == name:
                assert told.setdefault(body["webhook_id"], body["payload"]) == body["payload"]
        return [(each["status"], each["message"]) for each in told.values()]

    def event_ids(self, name: str) -> tuple[set[str], set[str]]:
        """Return the ids of the callbacks about a fax, and the ids of its events."""
        bodies = [json.loads(message.body) for message in self.queues.messages[WEBHOOK]]
        callbacks = {each["webhook_id"] for each in bodies if each["id"] == name}
        return callbacks, {each["event_id"] for each in self.bus.details if each["id"] == name}

    @contextmanager
    def _invocation(self) -> Iterator[Callable[[], int]]:
        """Limit the time of an invocation. It ends by a stop, or is killed at its timeout."""
        deadline = self.clock() + FUNCTION_SECONDS
        self._deadlines.append(deadline)
        try:
            with suppress(Stopped):
                yield lambda: int(max(0.0, deadline - self.clock()) * 1000)
        finally:
            self._deadlines.pop()

    def _retries_visible(self) -> float | None:
        return min((each.visible_at for each in self.queues.messages[RETRY]), default=None)


class _Sqs:
    """A client for the fax queue and the retry queue."""

    def __init__(self, fifo: Fifo, queues: Queues) -> None:
        self._fifo = fifo
        self._queues = queues

    def send_message_batch(self, *, QueueUrl: str, Entries: list[Item]) -> Item:  # noqa: N803
        if QueueUrl != FAX:
            return self._queues.send_message_batch(QueueUrl=QueueUrl, Entries=Entries)
        check_queue_call("SendMessageBatch", QueueUrl, Entries)
        for entry in Entries:
            self._fifo.put(entry["MessageBody"], entry["MessageGroupId"], entry["MessageDeduplicationId"])
        return {"Successful": [{"Id": entry["Id"]} for entry in Entries]}

    def change_message_visibility_batch(self, *, QueueUrl: str, Entries: list[Item]) -> Item:  # noqa: N803
        if QueueUrl != FAX:
            return self._queues.change_message_visibility_batch(QueueUrl=QueueUrl, Entries=Entries)
        check_queue_call("ChangeMessageVisibilityBatch", QueueUrl, Entries)
        for entry in Entries:
            self._fifo.hide(entry["ReceiptHandle"], entry["VisibilityTimeout"])
        return {}


def _fax_settings(max_attempts: int) -> FaxSender:
    return FaxSender(
        **sender_settings(
            "fax",
            FAX,
            lease_seconds=LEASE,
            on_unknown="hold",
            backoff_seconds=TIMES.backoff,
            backoff_cap_seconds=TIMES.backoff_cap,
            submit_seconds=TIMES.fax_submit,
            record_seconds=TIMES.fax_record,
        ),
        fax_provider="signalwire",
        fax_secret_arn="secret",
        fax_base_url="https://example.signalwire.com",
        fax_senders=[OURS],
        fax_connection_id="",
        fax_ttl_minutes=5,
        fax_quality="fine",
        media_seconds=60,
        poll_seconds=TIMES.fax_poll,
        longest_fax_seconds=TIMES.longest_fax,
        max_attempts=max_attempts,
        last_submit_receive=RULES.last_submit_receive,
        clock_skew_seconds=60,
        callback_schemes=["https"],
        callback_ports=[443],
    )
