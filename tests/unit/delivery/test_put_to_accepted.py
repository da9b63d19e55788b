"""How long a message takes from its put to the provider's yes: what dispatch says, what senders measure."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from mailroom.aws.queues import PUT_AT, put_at
from mailroom.channels.fax.contract import Delivered, Pending, Undelivered
from mailroom.clock import iso
from mailroom.delivery.delivery import Delivery
from tests.support.unit.dispatching import made, numbered
from tests.support.unit.events import lambda_context, sqs_record, stream_event
from tests.support.unit.fakes import Meddler, client_error
from tests.support.unit.fax import FakeLine, entry, fax_body
from tests.support.unit.fax_post import FaxMake
from tests.support.unit.functions import Load
from tests.support.unit.post import Make
from tests.support.unit.shared import NOW, Aws, FakeClock, image, item

Timed = Callable[[], dict[str, list[float]]]


def record(put: object = None, **attributes: str) -> dict[str, Any]:
    """A record of a queue, with the attribute as Lambda hands it over."""
    record = sqs_record(0, item())
    if put is not None:
        record["messageAttributes"] = {PUT_AT: {"stringValue": put, "dataType": "String"}}
    record["attributes"] |= attributes
    return record


def attributes_of(aws: Aws) -> dict[str, str]:
    """Those of the one queued message."""
    reply = aws.sqs.receive_message(QueueUrl=aws.urls["mail"], MessageAttributeNames=["All"])
    (message,) = reply["Messages"]
    return {name: value["StringValue"] for name, value in message["MessageAttributes"].items()}


def test_the_attribute_says_when_the_item_was_put() -> None:
    assert put_at(record(str(int(NOW) - 7))) == int(NOW) - 7


def test_without_the_attribute_a_message_waits_since_it_was_queued() -> None:
    assert put_at(record(SentTimestamp="1795251600250")) == 1795251600.25


@pytest.mark.parametrize("said", ["soon", "1.5", "nan", "inf", "-1", "9" * 12, "9" * 400, "9" * 5000])
def test_what_is_no_time_is_none(said: str) -> None:
    assert put_at(record(said)) is None


def test_a_queue_s_time_beyond_all_clocks_is_none() -> None:
    assert put_at(record(SentTimestamp="9" * 400)) is None


def test_a_record_that_says_nothing_of_time_has_none() -> None:
    untimed = record()
    del untimed["attributes"]["SentTimestamp"]
    assert put_at(untimed) is None


def test_dispatch_tells_the_sender_when_the_item_was_put(aws: Aws, clock: FakeClock) -> None:
    made(aws, clock).dispatch(numbered(item()), {"100": NOW - 3.7})
    assert attributes_of(aws)[PUT_AT] == str(int(NOW - 3.7))


def test_dispatch_says_nothing_of_what_it_does_not_know(aws: Aws, clock: FakeClock) -> None:
    made(aws, clock).dispatch(numbered(item()))
    assert PUT_AT not in attributes_of(aws)


def test_the_stream_is_what_knows_when_an_item_was_put(load: Load, aws: Aws) -> None:
    load("dispatch")(stream_event(image(**item())), lambda_context())
    assert attributes_of(aws)[PUT_AT] == str(int(NOW))


def test_a_sender_measures_from_the_put_to_the_yes(post: Make, clock: FakeClock, timed: Timed) -> None:
    clock.advance(4.25)
    post().handle(item())
    assert timed() == {"PutToAccepted": [4250]}


def test_what_had_a_time_of_its_own_is_measured_from_that(post: Make, clock: FakeClock, timed: Timed) -> None:
    clock.advance(600)
    post().handle(item(send_at=iso(NOW + 598)))
    assert timed() == {"PutToAccepted": [2000]}


def test_a_clock_that_is_behind_the_queue_s_makes_no_time_negative(
    post: Make, clock: FakeClock, timed: Timed
) -> None:
    clock.advance(-2)
    post().handle(item())
    assert timed() == {"PutToAccepted": [0]}


def test_what_is_not_recorded_is_not_measured(post: Make, aws: Aws, timed: Timed) -> None:
    writes = itertools.count()

    def first_alone(real: Callable[..., Any], **arguments: Any) -> Any:
        if next(writes):
            raise client_error("InternalServerError", status=500)
        return real(**arguments)

    worker = post(dynamodb=Meddler(aws.dynamodb, update_item=first_alone))
    worker.handle(item())
    assert (worker.submitted, aws.item()["status"]) == (["m-1"], "sending")
    assert timed() == {}


def test_an_error_of_the_measurement_costs_no_record_and_no_checkpoint_of_a_fax(
    post: Make, fax_post: FaxMake, aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Delivery, "measure", lambda *_: 1 / 0)
    post().handle(item())
    fax_post().handle(fax_body())
    assert (aws.item()["status"], entry(aws)["provider_id"]) == ("sent", "p-1")


def test_each_of_a_batch_counts_and_none_twice(post: Make, clock: FakeClock, timed: Timed) -> None:
    worker = post()
    clock.advance(1)
    worker.handle(item(id="a"), item(id="b"))
    worker.handle(item(id="a"))
    assert timed() == {"PutToAccepted": [1000, 1000]}


def test_a_fax_is_accepted_when_it_is_submitted_however_long_it_takes(
    fax_post: FaxMake, clock: FakeClock, timed: Timed
) -> None:
    clock.advance(2)
    fax_post(FakeLine(Pending("queued"), Pending("sending"), Delivered())).handle(fax_body())
    assert clock.slept
    assert timed() == {"PutToAccepted": [2000]}


def test_a_later_attempt_says_nothing_of_the_put(fax_post: FaxMake, clock: FakeClock, timed: Timed) -> None:
    worker = fax_post(FakeLine(Undelivered("busy", again=True), Delivered()))
    worker.handle(fax_body())
    clock.advance(600)
    worker.handle(fax_body(attempt=2))
    assert worker.line.submits == 2
    assert timed() == {"PutToAccepted": [0]}
