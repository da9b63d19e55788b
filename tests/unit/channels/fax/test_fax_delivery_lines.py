"""The line of a fax, and faxes that never get on one."""

import json
from typing import Any

import pytest

from mailroom.aws.queues import MAX_BYTES
from mailroom.clock import iso
from mailroom.ledger.ledger import Ledger
from tests.support.unit.fakes import client_error, failing
from tests.support.unit.fax import LINE, OTHER_LINE, TOLD, FakeLine, entry, fax, fax_body, fax_item, on_line
from tests.support.unit.fax_post import FaxMake
from tests.support.unit.post import Counted, Log, Visibilities
from tests.support.unit.shared import BUCKET, NOW, Aws, FakeClock, Item


@pytest.mark.parametrize("group", [OTHER_LINE, "faxes", "+1 (617) 555-1234", "16175551234"])
def test_a_fax_in_a_wrong_message_group_is_queued_again_in_its_lines_group_and_then_sent(
    fax_post: FaxMake, aws: Aws, counted: Counted, group: str
) -> None:
    worker = fax_post()
    body = fax_body(to="+1 (617) 555-1234", retry_count=3)
    assert worker.handle(body, group=group) is None
    assert (worker.line.calls, entry(aws)) == ([], {})
    (sent,) = aws.receive("fax.fifo")
    assert sent["Attributes"]["MessageGroupId"] == LINE
    assert sent["Attributes"]["MessageDeduplicationId"] == fax().duplicate
    assert json.loads(sent["Body"]) == fax_item(to="+1 (617) 555-1234", callback_url=TOLD, retry_count=3)
    assert counted() == {"SentOn": 1}
    assert worker.handle(sent["Body"], group=LINE) is None
    assert (worker.line.submits, entry(aws)["status"]) == (1, "delivered")
    assert entry(aws)["callback_url"] == TOLD


def test_a_fax_too_large_to_be_queued_again_ends_as_failed_and_does_not_lock_its_line(
    fax_post: FaxMake, aws: Aws
) -> None:
    worker = fax_post()
    assert worker.handle(fax_body(note="x" * (MAX_BYTES - 100)), group="faxes") is None
    assert (worker.line.calls, entry(aws)["status"]) == ([], "failed")
    assert entry(aws)["error"]["message"].startswith("item: is over 1 MiB as JSON")


@pytest.mark.parametrize("to", [LINE, "+1 617-555-1234"])
@pytest.mark.parametrize("group", [LINE, None])
def test_a_fax_in_its_lines_message_group_or_without_a_group_is_sent(
    fax_post: FaxMake, aws: Aws, group: str | None, to: str
) -> None:
    worker = fax_post()
    assert worker.handle(fax_body(to=to), group=group) is None
    assert worker.line.submits == 1
    assert worker.line.requests[0].to == LINE


def test_a_fax_is_retried_if_queueing_it_in_its_lines_group_fails(fax_post: FaxMake, aws: Aws) -> None:
    down = client_error("ServiceUnavailable", status=503)
    worker = fax_post(sqs=Visibilities(aws.sqs, send_message_batch=failing(down, down)))
    assert worker.handle(fax_body(), group="faxes", receives=3) == 16
    assert (worker.line.calls, entry(aws)) == ([], {})
    assert worker.handle(fax_body(), group="faxes", receives=4) is None
    assert len(aws.receive("fax.fifo")) == 1


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"to": "617-555-1234"}, "to: is not a number in international form"),
        ({"from": "+12025559999"}, "from: is not among this stage's fax numbers; use one of +12025550100"),
        ({"pdf_url": ..., "payload_ref": "s3://elsewhere/f-1.pdf"}, "payload_ref: 's3://elsewhere/f-1.pdf'"),
        ({"pdf_url": ..., "payload_ref": f"s3://{BUCKET}/" + "k" * 500_000}, "payload_ref: has 5"),
        ({"expires_at": f"2026-12-01T00:00:00.{'0' * 500_000}Z"}, "expires_at: '2026-12-01T00:00:00.000"),
        ({"attempt": 10**40}, "attempt: expected a number <= 999999999"),
    ],
)
def test_an_invalid_fax_ends_as_failed_with_its_reason_and_keeps_its_callback_url(
    fax_post: FaxMake, aws: Aws, changes: dict[str, Any], sentence: str
) -> None:
    worker = fax_post()
    assert worker.handle(fax_body(**changes)) is None
    assert (worker.line.calls, entry(aws)["status"], entry(aws)["error"]["code"]) == ([], "failed", "invalid")
    assert entry(aws)["error"]["message"].startswith(sentence)
    assert (entry(aws)["callback_url"], entry(aws)["callbacks"]) == (TOLD, {})


@pytest.mark.parametrize("group", [LINE, "faxes"])
def test_a_fax_queued_before_its_sending_time_fails_and_the_error_recommends_the_mailbox(
    fax_post: FaxMake, aws: Aws, group: str
) -> None:
    worker = fax_post()
    assert worker.handle(fax_body(send_at=iso(NOW + 61)), group=group) is None
    for sent_on in aws.receive("fax.fifo"):  # the fax, queued again in the message group of its number
        assert worker.handle(sent_on["Body"]) is None
    assert (worker.line.calls, entry(aws)["status"]) == ([], "failed")
    assert entry(aws)["error"]["message"] == (
        "send_at: is in the future, but a fax cannot wait in the fax queue; put it into the mailbox, or into "
        "the queue at that time"
    )
    assert entry(aws)["callback_url"] == TOLD


@pytest.mark.parametrize("ahead", [-3600, 0, 59])
def test_a_fax_is_sent_up_to_a_minute_before_its_sending_time_because_clocks_differ(
    fax_post: FaxMake, aws: Aws, ahead: float
) -> None:
    worker = fax_post()
    assert worker.handle(fax_body(send_at=iso(NOW + ahead))) is None
    assert (worker.line.submits, entry(aws)["status"]) == (1, "delivered")


def test_a_fax_to_an_invalid_number_fails_and_is_not_queued_again(fax_post: FaxMake, aws: Aws) -> None:
    assert fax_post().handle(fax_body(to="wrong"), group="wrong") is None
    assert entry(aws)["status"] == "failed"
    assert aws.receive("fax.fifo") == []


def test_a_callback_url_with_http_is_valid_if_the_stage_allows_http(fax_post: FaxMake, aws: Aws) -> None:
    body = fax_body(callback_url="http://127.0.0.1:8080/faxes")
    assert fax_post(callback_schemes=["https", "http"], callback_ports=[]).handle(body) is None
    assert (entry(aws)["status"], entry(aws)["callback_url"]) == ("delivered", "http://127.0.0.1:8080/faxes")


@pytest.mark.parametrize(
    "body",
    [
        *("no", "[]", {}, fax_body(fax_id=...), fax_body(fax_id=7), {"id": "f-1"}),
        pytest.param(fax_body(fax_id="f" * 2049), id="an id that no ledger item can have"),
        pytest.param(fax_item(event_type="f" * 1025), id="an event_type that no ledger item can have"),
        pytest.param(fax_body(attempt=2), id="the second attempt, before the first"),
        pytest.param(fax_body(attempt=7), id="the seventh attempt, before the first"),
        pytest.param('{"fax_id": "f-1", "copies": 1E+99999999999999999999}', id="a number beyond all"),
    ],
)
def test_a_fax_that_is_malformed_or_skips_an_attempt_becomes_a_dead_letter_at_once_and_is_not_sent(
    fax_post: FaxMake, aws: Aws, counted: Counted, body: str | Item
) -> None:
    worker = fax_post()
    assert worker.handle(body) == 0
    assert (worker.line.calls, entry(aws)) == ([], {})
    assert counted() == {"Malformed": 1}


NAMES = (
    *("fax_id", "id", "event_type", "to", "from", "pdf_url", "payload_ref", "callback_url", "lane", "topic"),
    *("send_at", "expires_at", "ttl", "attempt", "not_before", "note"),
)
VALUES: dict[str, Any] = {
    "long": "x" * 500_000,
    "a long number": "+1617555" + "0" * 500_000,
    "large": 10**300,
    "odd": {"a": [None, True, "\uffff\0"]},
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_an_invalid_fax_does_not_lock_its_line(fax_post: FaxMake, log: Log, name: str, value: Any) -> None:
    body = fax_body(**{name: value}, **({"pdf_url": ...} if name == "payload_ref" else {}))
    assert fax_post().handle(body) in {None, 0}  # done, or on its way to the dead letters
    assert "not delivered; it goes back to the queue" not in [line["message"] for line in log()]


def test_an_invalid_copy_of_the_queue_record_does_not_end_a_fax_that_is_being_transmitted(
    fax_post: FaxMake, fax_ledger: Ledger, aws: Aws, clock: FakeClock
) -> None:
    fax_ledger.hand_back(on_line(fax_ledger))
    worker = fax_post(FakeLine())
    assert worker.handle(fax_body(to="wrong"), group="wrong") == 0  # a wait would lock the line of its group
    assert ("completedAt" in entry(aws), entry(aws)["provider_id"]) == (False, "p-0")
    assert worker.handle(fax_body()) is None
    assert (worker.line.calls, entry(aws)["status"]) == (["fetch p-0"], "delivered")


def test_a_fax_submitted_to_another_provider_is_neither_looked_up_nor_sent_again(
    fax_post: FaxMake, fax_ledger: Ledger, aws: Aws, clock: FakeClock
) -> None:
    fax_ledger.hand_back(on_line(fax_ledger, "the-provider-before"))
    worker = fax_post(longest_fax_seconds=7200)
    clock.advance(200)
    assert worker.handle(fax_body()) == 7000  # the line of the fax may be in use until then
    clock.advance(7000)
    assert worker.handle(fax_body()) == 20
    assert (worker.line.calls, entry(aws)["provider_id"]) == ([], "p-0")
    assert (entry(aws)["trouble"]["code"], "the-provider-before" in entry(aws)["trouble"]["message"]) == (
        "elsewhere",
        True,
    )


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("http://app.example/faxes", "has the scheme 'http'; use https"),
        ("https://user:pw@app.example/faxes", ""),
        ("https://app.example:9443/faxes", ""),
        ("https://2130706433/x", ""),
    ],
)
def test_a_fax_with_an_invalid_or_forbidden_callback_url_is_not_submitted(
    fax_post: FaxMake, aws: Aws, url: str, fault: str
) -> None:
    worker = fax_post()
    assert worker.handle(fax_body(callback_url=url)) is None
    assert (worker.line.calls, entry(aws)["status"]) == ([], "failed")
    assert entry(aws)["error"]["message"].startswith(f"callback_url: {fault}")
