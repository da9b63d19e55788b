"""Dispatch of faxes: by line, delayed by a queue that can delay, reported if the stage allows it."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from mailroom.channels.contracts import CONTRACTS
from mailroom.content.payloads import Payloads
from mailroom.dispatch.dispatcher import Dispatcher, Validator
from mailroom.http.url_policy import UrlPolicy
from mailroom.ledger.change import LedgerChange
from mailroom.ledger.ledger import Ledger
from mailroom.ledger.waits import Waits
from mailroom.outcomes import callback_of
from tests.support.unit.dispatching import iso_after, numbered
from tests.support.unit.fakes import Meddler
from tests.support.unit.fax import FAX_KEY, LINE, OTHER_LINE, TOLD, fax, fax_item
from tests.support.unit.fax import entry as ledger_item
from tests.support.unit.shared import BUCKET, LEDGER, TTL, Aws, FakeClock, Item, item

MakeDispatcher = Callable[..., Dispatcher]


@pytest.fixture
def sqs(aws: Aws) -> Meddler:
    """The queues, with what was asked of them."""
    return Meddler(aws.sqs)


@pytest.fixture
def make_dispatcher(aws: Aws, clock: FakeClock, sqs: Meddler) -> MakeDispatcher:

    def make(callbacks: UrlPolicy | None = None) -> Dispatcher:
        routes = {"mail": {"normal": aws.urls["mail"]}, "fax": {"normal": aws.urls["fax.fifo"]}}
        delayed = {"fax": aws.urls["fax-retry"]}
        validator = Validator(
            CONTRACTS,
            routes,
            payloads=Payloads(aws.s3, BUCKET),
            callbacks=callbacks or UrlPolicy(),
            clock=clock,
            waiting=delayed,
        )
        return Dispatcher(
            routes,
            validator,
            ledger=Ledger(aws.dynamodb, LEDGER, lease=0, ttl=TTL, clock=clock),
            waits=Waits(aws.dynamodb, LEDGER, TTL, clock),
            sqs=sqs,  # type: ignore[arg-type]
            clock=clock,
            delayed_routes=delayed,
        )

    return make


def entries_in(sqs: Meddler, queue: str) -> list[dict[str, Any]]:
    return [
        entry
        for _, call in sqs.calls
        if call["QueueUrl"].endswith(f"mailroom-test-{queue}")
        for entry in call["Entries"]
    ]


def test_a_fax_is_queued_in_the_message_group_of_its_line(
    make_dispatcher: MakeDispatcher, aws: Aws, sqs: Meddler
) -> None:
    given = fax_item(to="+1 (617) 555-1234", callback_url=TOLD)
    assert make_dispatcher().dispatch(numbered(given)) == set()
    (sent,) = aws.receive("fax.fifo")
    assert json.loads(sent["Body"]) == given
    (entry,) = entries_in(sqs, "fax.fifo")
    assert (entry["MessageGroupId"], entry["MessageDeduplicationId"]) == (LINE, fax().duplicate)
    assert "DelaySeconds" not in entry
    assert ledger_item(aws) == {}


def test_each_line_has_its_own_message_group_and_each_fax_its_own_deduplication_id(
    make_dispatcher: MakeDispatcher, sqs: Meddler
) -> None:
    make_dispatcher().dispatch(numbered(fax_item(id="a"), fax_item(id="b"), fax_item(id="c", to=OTHER_LINE)))
    sent = entries_in(sqs, "fax.fifo")
    assert [each["MessageGroupId"] for each in sent] == [LINE, LINE, OTHER_LINE]
    assert len({each["MessageDeduplicationId"] for each in sent}) == 3


@pytest.mark.parametrize(("wait", "delay"), [(1, 1), (60.5, 61), (120, 120)])
def test_a_fax_that_is_due_soon_waits_in_the_queue_that_supports_delays(
    make_dispatcher: MakeDispatcher, sqs: Meddler, wait: float, delay: int
) -> None:
    assert make_dispatcher().dispatch(numbered(fax_item(send_at=iso_after(wait)))) == set()
    (entry,) = entries_in(sqs, "fax-retry")
    assert entry["DelaySeconds"] == delay
    assert "MessageDeduplicationId" not in entry
    assert json.loads(entry["MessageBody"])["id"] == "f-1"
    assert entries_in(sqs, "fax.fifo") == []


@pytest.mark.parametrize("wait", [0, -3600])
def test_a_due_fax_is_queued_without_a_delay(
    make_dispatcher: MakeDispatcher, sqs: Meddler, wait: float
) -> None:
    make_dispatcher().dispatch(numbered(fax_item(send_at=iso_after(wait))))
    assert len(entries_in(sqs, "fax.fifo")) == 1
    assert entries_in(sqs, "fax-retry") == []


def test_the_cancellation_of_a_scheduled_fax_is_reported_to_its_callback_url(
    make_dispatcher: MakeDispatcher, fax_ledger: Ledger, aws: Aws
) -> None:
    assert (
        make_dispatcher().dispatch(numbered(fax_item(send_at=iso_after(86_400), callback_url=TOLD))) == set()
    )
    before = ledger_item(aws)
    assert (before["status"], before["callback_url"], before["to"]) == ("scheduled", TOLD, LINE)
    assert fax_ledger.cancel(FAX_KEY, "the item was deleted from the mailbox before its send_at")
    callback = callback_of(LedgerChange(before, ledger_item(aws)), max_attempts=20)
    assert callback is not None
    assert (callback.url, callback.payload["status"]) == (TOLD, "perm_fail")


@pytest.mark.parametrize("given", [fax_item, item], ids=["fax", "mail"])
def test_a_message_with_a_callback_url_over_http_is_refused(
    make_dispatcher: MakeDispatcher, aws: Aws, given: Callable[..., Item]
) -> None:
    refused = given(callback_url="http://app.example/faxes")
    assert make_dispatcher().dispatch(numbered(refused)) == set()
    record = aws.item(refused["id"], refused["event_type"])
    assert record["error"]["message"] == "callback_url: has the scheme 'http'; use https"
    assert (aws.receive("fax.fifo"), aws.receive()) == ([], [])


def test_a_fax_with_a_callback_url_over_http_is_queued_if_the_stage_allows_http(
    make_dispatcher: MakeDispatcher, aws: Aws
) -> None:
    dispatcher = make_dispatcher(callbacks=UrlPolicy(schemes=["https", "http"], ports=[]))
    assert dispatcher.dispatch(numbered(fax_item(callback_url="http://127.0.0.1:8080/"))) == set()
    assert len(aws.receive("fax.fifo")) == 1


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"to": "617-555-1234"}, "to: is not a number in international form"),
        ({"to": ...}, "to: is missing"),
        ({"pdf_url": ...}, "pdf_url: is missing"),
        ({"pdf_url": ..., "payload_ref": "s3://elsewhere/f-1.pdf"}, "payload_ref: 's3://elsewhere/f-1.pdf'"),
        ({"lane": "bulk"}, "lane: 'bulk' is not set up for fax; use normal"),
        ({"attempt": 2}, "attempt: is reserved for Mailroom"),
    ],
)
def test_an_invalid_fax_fails_with_its_reason_and_does_not_stop_other_faxes(
    make_dispatcher: MakeDispatcher, aws: Aws, changes: dict[str, Any], sentence: str
) -> None:
    items = (fax_item(callback_url=TOLD, **changes), fax_item(id="good"))
    assert make_dispatcher().dispatch(numbered(*items)) == set()
    assert ledger_item(aws)["error"]["message"].startswith(sentence)
    assert ledger_item(aws)["callback_url"] == TOLD
    assert [each["id"] for each in aws.bodies("fax.fifo")] == ["good"]


def test_a_fax_for_a_stage_without_fax_is_refused(aws: Aws, dispatcher: Dispatcher) -> None:
    assert dispatcher.dispatch(numbered(fax_item())) == set()
    assert ledger_item(aws)["error"]["message"] == "event_type: 'fax' is not allowed here; use mail"


def test_a_fax_with_the_reserved_attribute_not_before_is_refused(
    make_dispatcher: MakeDispatcher, aws: Aws
) -> None:
    assert make_dispatcher().dispatch(numbered(fax_item(send_at=iso_after(60), not_before=2**40))) == set()
    assert ledger_item(aws)["error"]["message"] == "not_before: is reserved for Mailroom; use send_at"
    assert (aws.receive("fax-retry"), aws.receive("fax.fifo")) == ([], [])
