"""The HTTP API's function, stopped at every outside call; its caller sends the same request again."""

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

import boto3
import pytest
from moto import mock_aws

from mailroom.api.answers import ApiError
from mailroom.api.callers import Caller
from mailroom.api.messages import Intake, States
from mailroom.aws import clients
from mailroom.aws.dynamo_values import plain
from mailroom.budget import Budget
from mailroom.channels.contracts import CONTRACTS
from mailroom.content.payloads import Payloads
from mailroom.dispatch.dispatcher import Validator
from mailroom.http.url_policy import UrlPolicy
from mailroom.ledger.status_reader import LedgerReader
from mailroom.ledger.table import LedgerTable
from mailroom.mailbox import MailboxWriter, Oversize
from mailroom.message.message import parse
from tests.support.faults.outside import Outside, Side, Stopped
from tests.support.faults.stops import call_numbers, stops
from tests.support.faults.world import MAIL, World, mail

NewWorld = Callable[..., World]
LANES = {"mail": ["normal", "bulk"]}
LARGE = {"id": "large", "event_type": "mail", "to": "a@example.com", "subject": "S", "text": "x" * 500_000}
ENTRIES = [mail("one"), mail("bad", to="nobody"), LARGE, mail("two", lane="bulk")]


@pytest.fixture
def bucket() -> Iterator[Any]:
    with mock_aws():
        s3 = boto3.client("s3", region_name="us-east-1")
        s3.create_bucket(Bucket="payloads")
        yield s3


class CrashingApi:
    """New process of the API's function in a world of mail."""

    def __init__(self, world: World, s3: Any, threads: "Threads | None" = None) -> None:
        outside = threads or world.outside
        self.dynamodb = world.dynamodb
        watched = outside.watch(self.dynamodb, "put_item", "get_item")
        payloads = outside.watch(s3, "put_object")
        validator = Validator(
            CONTRACTS, LANES, payloads=Payloads(s3, "payloads"), callbacks=UrlPolicy(), clock=world.clock
        )
        writer = MailboxWriter(watched, "mailbox", oversize=Oversize(payloads, lambda: "payloads"))
        self.intake = Intake(validator, writer, workers=4 if threads else 1)
        reader = LedgerReader(watched, "ledger", "mailbox", world.clock)
        ledger = LedgerTable(outside.watch(self.dynamodb, "update_item"), "ledger", 1e6, world.clock)
        self.states = States(reader, ledger, world.clock)

    def mailbox(self) -> dict[str, Any]:
        return {each["id"]["S"]: plain(each) for each in self.dynamodb.scan(TableName="mailbox")["Items"]}


class Threads(Outside):
    """Calls of several threads, one at a time. If the process dies, all threads end; if not, only one of them
    ends at the stop."""

    def __init__(self, *, dies: bool) -> None:
        super().__init__()
        self._dies = dies
        self._lock = threading.Lock()

    def call(self, name: str, operation: Callable[..., Any], **arguments: Any) -> Any:
        with self._lock:
            if self._dies and self.stop is not None and self.stopped_at is not None:
                raise Stopped(self.stopped_at)
            return super().call(name, operation, **arguments)


def post_entries(
    world: World, s3: Any, entries: list[Any] = ENTRIES, threads: Threads | None = None
) -> list[str]:
    """Let a new process answer the request."""
    return [each.result for each in CrashingApi(world, s3, threads).intake.take(entries, "")]


@pytest.mark.parametrize("side", ["before", "after"])
def test_an_api_request_that_is_repeated_after_a_crash_at_any_call_puts_each_message_once(
    bucket: Any, new_world: NewWorld, side: Side
) -> None:
    whole = new_world()
    assert post_entries(whole, bucket) == ["accepted", "refused", "accepted", "accepted"]
    calls = len(whole.outside.calls)
    assert calls == 4  # three items and one object
    for at in range(calls):
        world = new_world()
        world.outside.stop = (at, side)
        with pytest.raises(Stopped):
            post_entries(world, bucket)
        again = post_entries(world, bucket)
        assert again[1] == "refused"
        assert set(again) <= {"accepted", "existed", "refused"}, world.outside.stopped_at
        items = CrashingApi(world, bucket).mailbox()
        assert items.keys() == {"one", "two", "large"}, world.outside.stopped_at
        assert items["large"]["payload_ref"].startswith("s3://payloads/oversize/")
        assert post_entries(world, bucket) == ["existed", "refused", "existed", "existed"]


MANY = [*ENTRIES, mail("three"), mail("one"), mail("two", lane="normal", first_name="Eve")]
"""Two items have the key of an earlier item: a repeat of the same message, and a different one."""
ENDS = ["accepted", "refused", "accepted", "accepted", "accepted", "existed", "conflict"]


@pytest.mark.parametrize("dies", [True, False])
@pytest.mark.parametrize("side", ["before", "after"])
def test_an_api_request_with_a_crash_in_one_of_its_threads_puts_each_message_once_if_repeated(
    bucket: Any, new_world: NewWorld, side: Side, *, dies: bool
) -> None:
    whole = Threads(dies=dies)
    assert post_entries(new_world(), bucket, MANY, whole) == ENDS
    calls = len(whole.calls)
    assert calls == 7  # six items and one object
    for at in range(calls):
        world, threads = new_world(), Threads(dies=dies)
        threads.stop = (at, side)
        with pytest.raises(Stopped):
            post_entries(world, bucket, MANY, threads)
        threads.stop = None
        again = post_entries(world, bucket, MANY, threads)
        for first, second in zip(ENDS, again, strict=True):
            assert second in ({"accepted", "existed"} if first == "accepted" else {first}), (at, again)
        items = CrashingApi(world, bucket).mailbox()
        assert items.keys() == {"one", "two", "three", "large"}, at
        assert (items["two"]["lane"], items["two"]["first_name"]) == ("bulk", "Ada"), at
        assert items["large"]["payload_ref"].startswith("s3://payloads/oversize/")


LIMIT = [("0001-01-01", 4)]
COUNTED = [mail("one", to=["a@example.com", "b@example.com"]), mail("two"), mail("two", first_name="Eve")]
"""Messages to three; the last is another one under a key that stands above."""


def posted_by_a_caller(world: World, s3: Any, patch: pytest.MonkeyPatch) -> list[str]:
    """Let a new process answer a caller with a daily limit; [] if the limit is used up."""
    watched = world.outside.watch(world.dynamodb, "update_item", "get_item")
    patch.setattr(clients, "dynamodb_once", lambda: watched)
    caller = Caller(
        budget=Budget(watched, "budgets", "api#shop", LIMIT, clock=world.clock), clock=world.clock
    )
    try:
        return [each.result for each in CrashingApi(world, s3).intake.take(COUNTED, "", caller)]
    except ApiError as refusal:
        if refusal.status != 429:
            raise
        return []


def day_of(world: World, s3: Any) -> tuple[int, int]:
    """The recipients of the messages in the mailbox, and those that the caller's day counts."""
    put = sum(parse(each, CONTRACTS).recipient_count for each in CrashingApi(world, s3).mailbox().values())
    return put, Budget(world.dynamodb, "budgets", "api#shop", LIMIT, clock=world.clock).spent()[0]


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_callers_daily_count_includes_every_recipient_put_wherever_its_api_request_crashes(
    bucket: Any, new_world: NewWorld, monkeypatch: pytest.MonkeyPatch, side: Side
) -> None:
    first, again = ["accepted", "accepted", "conflict"], ["existed", "existed", "conflict"]
    whole = new_world()
    assert posted_by_a_caller(whole, bucket, monkeypatch) == first
    calls = len(whole.outside.calls)
    assert posted_by_a_caller(whole, bucket, monkeypatch) == again
    assert day_of(whole, bucket) == (3, 3)
    for at in range(len(whole.outside.calls)):
        world = new_world()
        if at >= calls:  # of a request that is sent again, which gives back what it has taken
            posted_by_a_caller(world, bucket, monkeypatch)
        world.outside.stop = (at, side)
        with pytest.raises(Stopped):
            posted_by_a_caller(world, bucket, monkeypatch)
        for _ in range(2):
            put, counted = day_of(world, bucket)
            assert put <= counted <= 4, world.outside.stopped_at
            posted_by_a_caller(world, bucket, monkeypatch)
        world.clock.now += 100_000
        posted_by_a_caller(world, bucket, monkeypatch)
        assert posted_by_a_caller(world, bucket, monkeypatch) == again
        assert day_of(world, bucket)[0] == 3, world.outside.stopped_at


def world_with_waiting(new_world: NewWorld, seconds: int, *, dispatched: bool = True) -> World:
    world = new_world()
    due = datetime.fromtimestamp(world.clock() + seconds, UTC).isoformat()
    world.put(mail("later", send_at=due))
    if dispatched:
        world.stream()
    return world


def cancel(world: World, s3: Any) -> None:
    """Take the message back, as far as the process lives."""
    with suppress(Stopped):
        assert CrashingApi(world, s3).states.cancel("later", "mail").status == "cancelled"


@pytest.mark.parametrize("dispatched", [True, False])
@pytest.mark.parametrize("seconds", [100, 86_400])
def test_a_cancelled_message_is_never_sent_wherever_the_cancel_request_crashes_before_its_retry(
    bucket: Any, new_world: NewWorld, seconds: int, *, dispatched: bool
) -> None:
    begin = partial(world_with_waiting, new_world, seconds, dispatched=dispatched)
    # The cancel reads the state of the message and its item, changes the item, and reads both again.
    for world, where in stops(begin, lambda world: cancel(world, bucket), least=4):
        assert CrashingApi(world, bucket).states.cancel("later", "mail").status == "cancelled"
        if not dispatched:
            world.stream()
        world.settle()
        assert world.sends() == {}, where
        assert world.end("later") == "cancelled: cancelled", where


def test_a_cancel_request_and_a_senders_concurrent_claim_of_a_message_do_not_both_succeed(
    bucket: Any, new_world: NewWorld
) -> None:
    """Whoever writes first decides, and the other learns of it."""
    ends, refusals = set(), set()
    for at in call_numbers(partial(world_with_waiting, new_world, 100), lambda world: cancel(world, bucket)):
        world = world_with_waiting(new_world, 100)
        body = world.queues.messages[MAIL][0].body
        api = CrashingApi(world, bucket)

        def send(world: World = world, body: str = body) -> None:
            world.outside.intrude = None
            world.queues.messages[MAIL].clear()
            world.enqueue(body)
            world.deliver()

        world.outside.intrude = (at, send)
        try:
            status = api.states.cancel("later", "mail").status
        except ApiError as refusal:
            refusals.add(refusal.status)
            status = api.states.of("later", "mail").status
        sent = world.sends() == {"later": 1}
        assert status == ("sent" if sent else "cancelled"), at
        assert world.found("later")["status"] == status
        ends.add(status)
    assert (ends, refusals) == ({"sent", "cancelled"}, {409})
