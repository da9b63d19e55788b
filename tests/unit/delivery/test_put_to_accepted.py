"""Time from a message's put to the provider's acceptance, as dispatch passes it on and senders measure it."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from mailroom.aws.queues import DUE_AT, PUT_AT, due_at, put_at
from mailroom.channels.fax.contract import Delivered, Pending, Undelivered
from mailroom.clock import iso
from mailroom.delivery.attempt import Attempt
from tests.support.unit.dispatching import dispatcher_of, numbered
from tests.support.unit.events import lambda_context, plenty, sqs_record, stream_event
from tests.support.unit.fakes import Meddler, client_error
from tests.support.unit.fax import FakeLine, entry, fax_body
from tests.support.unit.fax_post import FaxMake
from tests.support.unit.functions import Load
from tests.support.unit.post import Make
from tests.support.unit.shared import NOW, NOW_MS, Aws, FakeClock, image, item

Timed = Callable[[], dict[str, list[float]]]


def queue_record(put: object = None, **attributes: str) -> dict[str, Any]:
    """Return a queue's record as Lambda hands it over, with the attribute of the put."""
    record = sqs_record(0, item())
    if put is not None:
        record["messageAttributes"] = {PUT_AT: {"stringValue": put, "dataType": "String"}}
    record["attributes"] |= attributes
    return record


def waited_record(put: float, due: float) -> dict[str, Any]:
    """Return the record of a message that has waited."""
    waited = queue_record(str(int(put)))
    waited["messageAttributes"][DUE_AT] = {"stringValue": str(int(due)), "dataType": "String"}
    return waited


def attributes_of(aws: Aws) -> dict[str, str]:
    """Return the attributes of the only message in the queue."""
    reply = aws.sqs.receive_message(QueueUrl=aws.urls["mail"], MessageAttributeNames=["All"])
    (message,) = reply["Messages"]
    return {name: value["StringValue"] for name, value in message["MessageAttributes"].items()}


def test_the_time_of_the_mailbox_put_is_read_from_the_attribute_of_the_queue_record() -> None:
    assert put_at(queue_record(str(int(NOW) - 7))) == int(NOW) - 7


def test_the_time_of_the_mailbox_put_defaults_to_the_time_at_which_the_record_was_queued() -> None:
    assert put_at(queue_record(SentTimestamp="1795251600250")) == 1795251600.25


def test_only_the_queue_record_of_a_message_that_has_waited_has_a_due_time() -> None:
    assert due_at(waited_record(NOW - 60, NOW - 7)) == NOW - 7
    assert due_at(queue_record(str(int(NOW)), SentTimestamp=str(NOW_MS))) is None


@pytest.mark.parametrize("text", ["soon", "1.5", "nan", "inf", "-1", "9" * 12, "9" * 400, "9" * 5000])
def test_an_invalid_put_at_attribute_of_a_queue_record_is_ignored(text: str) -> None:
    assert put_at(queue_record(text)) is None


def test_an_sqs_sent_timestamp_that_is_too_large_for_a_date_is_ignored() -> None:
    assert put_at(queue_record(SentTimestamp="9" * 400)) is None


def test_the_time_of_the_mailbox_put_is_unknown_if_the_queue_record_contains_no_time() -> None:
    untimed = queue_record()
    del untimed["attributes"]["SentTimestamp"]
    assert put_at(untimed) is None


def test_dispatch_passes_the_time_of_the_mailbox_put_to_the_sender(aws: Aws, clock: FakeClock) -> None:
    dispatcher_of(aws, clock).dispatch(numbered(item()), {"100": NOW - 3.7})
    assert attributes_of(aws)[PUT_AT] == str(int(NOW - 3.7))


def test_dispatch_omits_the_put_at_attribute_if_the_time_of_the_mailbox_put_is_unknown(
    aws: Aws, clock: FakeClock
) -> None:
    dispatcher_of(aws, clock).dispatch(numbered(item()))
    assert PUT_AT not in attributes_of(aws)


def test_dispatch_reads_the_time_of_the_mailbox_put_from_the_stream_record(load: Load, aws: Aws) -> None:
    load("dispatch")(stream_event(image(**item())), lambda_context())
    assert attributes_of(aws)[PUT_AT] == str(int(NOW))


@pytest.mark.parametrize(
    ("seconds", "send_at", "delay"),
    [(4.25, ..., 4250), (600, iso(NOW + 598), 2000), (-2, ..., 0)],
    ids=["from the put", "from send_at", "never negative if the sender's clock is behind"],
)
def test_a_sender_measures_the_time_from_the_mailbox_put_or_send_at_to_the_providers_acceptance(
    make_post: Make, clock: FakeClock, timed: Timed, seconds: float, send_at: Any, delay: int
) -> None:
    clock.advance(seconds)
    make_post().handle(item(send_at=send_at))
    assert timed() == {"PutToAccepted": [delay]}


@pytest.mark.parametrize(("due", "delay"), [(NOW, 2_000), (NOW - 3_600, 3_602_000)])
def test_the_time_to_acceptance_of_a_message_that_has_waited_is_measured_from_its_due_at(
    make_post: Make, clock: FakeClock, timed: Timed, due: float, delay: int
) -> None:
    """A wait for a window ends when it opens; a wait for a provider is a delay from the put on."""
    clock.advance(2)
    make_post()._worker.handle({"Records": [waited_record(NOW - 3_600, due)]}, plenty)
    assert timed() == {"PutToAccepted": [delay]}


def test_time_to_acceptance_is_not_measured_if_the_ledger_could_not_record_the_acceptance(
    make_post: Make, aws: Aws, timed: Timed
) -> None:
    writes = itertools.count()

    def first_alone(real: Callable[..., Any], **arguments: Any) -> Any:
        if next(writes):
            raise client_error("InternalServerError", status=500)
        return real(**arguments)

    worker = make_post(dynamodb=Meddler(aws.dynamodb, update_item=first_alone))
    worker.handle(item())
    assert (worker.submitted, aws.item()["status"]) == (["m-1"], "sending")
    assert timed() == {}


def test_a_failed_measurement_prevents_neither_the_ledger_write_nor_a_faxs_checkpoint(
    make_post: Make, fax_post: FaxMake, aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Attempt, "measure", lambda *_: 1 / 0)
    make_post().handle(item())
    fax_post().handle(fax_body())
    assert (aws.item()["status"], entry(aws)["provider_id"]) == ("sent", "p-1")


def test_time_to_acceptance_is_measured_once_per_message_despite_duplicates(
    make_post: Make, clock: FakeClock, timed: Timed
) -> None:
    worker = make_post()
    clock.advance(1)
    worker.handle(item(id="a"), item(id="b"))
    worker.handle(item(id="a"))
    assert timed() == {"PutToAccepted": [1000, 1000]}


def test_the_time_to_acceptance_of_a_fax_ends_at_its_submit_and_not_at_its_delivery(
    fax_post: FaxMake, clock: FakeClock, timed: Timed
) -> None:
    clock.advance(2)
    fax_post(FakeLine(Pending("queued"), Pending("sending"), Delivered())).handle(fax_body())
    assert clock.slept
    assert timed() == {"PutToAccepted": [2000]}


def test_time_to_acceptance_is_measured_for_the_first_attempt_only(
    fax_post: FaxMake, clock: FakeClock, timed: Timed
) -> None:
    worker = fax_post(FakeLine(Undelivered("busy", again=True), Delivered()))
    worker.handle(fax_body())
    clock.advance(600)
    worker.handle(fax_body(attempt=2))
    assert worker.line.submits == 2
    assert timed() == {"PutToAccepted": [0]}
