"""After a function was cut off, each of its messages is worked on by itself."""

from collections.abc import Callable
from itertools import count
from threading import active_count
from typing import Any

import pytest

from mailroom.ledger.ledger import Ledger
from mailroom.message.message import Message
from mailroom.message.outcome import Retry
from tests.support.unit.fakes import Meddler, client_error, failing
from tests.support.unit.post import Log, Make
from tests.support.unit.shared import LEASE, Aws, FakeClock, Item, item, mail

NAMES = [f"m-{number}" for number in range(10)]


@pytest.fixture
def cut_off(ledger: Ledger, clock: FakeClock) -> Callable[..., list[Item]]:
    """Function that claims messages as a function does that is cut off before it writes why they were not
    sent, and returns their items after the lease."""

    def claim(*names: str) -> list[Item]:
        for name in names:
            ledger.claim(mail(name))
        clock.now += LEASE + 1
        return [item(id=name) for name in names]

    return claim


def test_one_message_of_a_cut_off_function_is_sent_and_the_others_are_returned_to_the_queue_at_once(
    make_post: Make, cut_off: Callable[..., list[Item]]
) -> None:
    worker = make_post()
    returned = worker.handle(*cut_off(*NAMES), receives=2)
    assert len(worker.submitted) == 1
    assert returned == dict.fromkeys(
        (name.replace("m", "r") for name in NAMES if name not in worker.submitted), 0
    )


def test_messages_of_a_cut_off_function_are_returned_to_the_queue_before_any_message_is_prepared(
    make_post: Make, cut_off: Callable[..., list[Item]]
) -> None:
    def die(_message: Message) -> Any:
        raise KeyboardInterrupt

    worker = make_post(prepare=die)
    with pytest.raises(KeyboardInterrupt):
        worker.handle(*cut_off(*NAMES), receives=2)
    assert [*worker.visibilities.values()] == [0] * 9


def test_messages_that_were_not_cut_off_are_sent_before_messages_of_a_cut_off_function(
    make_post: Make, cut_off: Callable[..., list[Item]]
) -> None:
    throttled = make_post(Retry("busy"))
    throttled.handle(item(id="throttled"))
    worker = make_post()
    doubtful = cut_off("a", "b")
    bodies = [*doubtful, item(id="throttled"), item(id="unclaimed"), item(id="new")]
    assert list(worker.handle(*bodies, receives=[2, 3, 2, 2, 1]).values()) == [0]
    assert worker.submitted[0] == "new"
    assert {*worker.submitted[1:3]} == {"throttled", "unclaimed"}
    assert worker.submitted[3:] == ["b"]


def test_messages_whose_provider_did_not_respond_are_sent_in_one_batch(
    make_post: Make, clock: FakeClock
) -> None:
    make_post(TimeoutError()).handle(item(id="a"), item(id="b"))
    clock.now += LEASE + 1
    worker = make_post()
    assert worker.handle(item(id="a"), item(id="b"), receives=2) == {}
    assert sorted(worker.submitted) == ["a", "b"]


def test_messages_that_were_throttled_and_then_in_a_cut_off_function_are_not_sent_in_one_batch(
    make_post: Make, cut_off: Callable[..., list[Item]]
) -> None:
    make_post(Retry("busy")).handle(item(id="a"), item(id="b"))
    worker = make_post()
    assert len(worker.handle(*cut_off("a", "b"), receives=3)) == 1


def test_a_message_of_a_cut_off_function_is_prepared_after_all_threads_have_ended(
    make_post: Make, aws: Aws, clock: FakeClock, cut_off: Callable[..., list[Item]]
) -> None:
    threads = dict[str, int]()
    before = active_count()

    def note(message: Message) -> Message:
        threads[message.id] = active_count() - before
        return message

    worker = make_post(prepare=note, submits_at_once=4)
    worker.handle(*cut_off("a"), *(item(id=f"new-{number}") for number in range(8)), receives=[2] + [1] * 8)
    assert [*threads][-1] == "a"
    assert threads["a"] <= 1


def test_all_messages_of_a_cut_off_function_are_sent_if_the_ledger_cannot_be_read(
    make_post: Make, aws: Aws, cut_off: Callable[..., list[Item]], log: Log
) -> None:
    client = Meddler(aws.dynamodb, batch_get_item=failing(client_error("InternalServerError")))
    worker = make_post(dynamodb=client)
    assert worker.handle(*cut_off("a", "b"), receives=2) == {}
    assert sorted(worker.submitted) == ["a", "b"]
    assert "could not be read" in str(log())


@pytest.mark.parametrize(("names", "receives"), [("abc", 1), ("a", 2)])
def test_new_records_and_a_single_record_are_not_looked_up_in_the_ledger_before_they_are_claimed(
    make_post: Make, aws: Aws, names: str, receives: int
) -> None:
    client = Meddler(aws.dynamodb)
    make_post(dynamodb=client).handle(*(item(id=name) for name in names), receives=receives)
    assert "batch_get_item" not in [name for name, _ in client.calls]


def test_a_message_that_kills_each_function_that_receives_it_delays_other_messages_at_most_once(
    aws: Aws, clock: FakeClock, ledger: Ledger, make_post: Make
) -> None:
    """The queue is modelled here: a function that dies makes its records visible again after a while."""
    random = count()

    def prepare(message: Message) -> Message:
        if message.id == "m-3":
            raise KeyboardInterrupt
        return message

    worker = make_post(prepare=prepare, jitter=lambda: next(random) * 0.37 % 1)
    receives, delays = dict.fromkeys(NAMES, 0), dict.fromkeys(NAMES, 0)
    while waiting := [name for name in NAMES if aws.item(name).get("status") != "sent"]:
        if waiting == ["m-3"]:
            break
        for name in waiting:
            receives[name] += 1
        try:
            worker.handle(*(item(id=name) for name in waiting), receives=[receives[name] for name in waiting])
        except KeyboardInterrupt:
            clock.now += LEASE + 1
            given_back = {name.replace("r", "m") for name in worker.visibilities}
            unsent = [name for name in waiting if aws.item(name).get("status") != "sent"]
            for name in {*unsent} - given_back:
                delays[name] += 1
    assert max(delay for name, delay in delays.items() if name != "m-3") == 1
    assert max(receives.values()) <= len(NAMES) + 1
