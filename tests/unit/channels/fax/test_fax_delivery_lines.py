"""Which line a fax is on, and what never gets on one."""

import json
from typing import Any

import pytest

from mailroom.aws.queues import MAX_BYTES
from mailroom.clock import iso
from mailroom.ledger.claims import Claimed
from mailroom.ledger.ledger import Ledger
from tests.support.unit.fakes import Meddler, client_error, failing
from tests.support.unit.fax import (
    FAX_LEASE,
    LINE,
    OTHER_LINE,
    TOLD,
    FakeLine,
    fax,
    fax_body,
    fax_item,
    found,
)
from tests.support.unit.fax_post import FaxMake
from tests.support.unit.post import Counted, Log
from tests.support.unit.shared import BUCKET, NOW, Aws, FakeClock, Item


@pytest.mark.parametrize("group", [OTHER_LINE, "faxes", "+1 (617) 555-1234", "16175551234"])
def test_a_fax_under_another_group_is_sent_on_under_its_lines_and_not_begun(
    fax_post: FaxMake, aws: Aws, counted: Counted, group: str
) -> None:
    worker = fax_post()
    body = fax_body(to="+1 (617) 555-1234", attempt=3)
    assert worker.handle(body, group=group) is None
    assert (worker.line.calls, found(aws)) == ([], {})
    (sent,) = aws.receive("fax.fifo")
    assert sent["Attributes"]["MessageGroupId"] == LINE
    assert sent["Attributes"]["MessageDeduplicationId"] == fax(attempt=3).duplicate
    assert json.loads(sent["Body"]) == fax_item(to="+1 (617) 555-1234", callback_url=TOLD, attempt=3)
    assert counted() == {"SentOn": 1}


def test_what_was_sent_on_is_faxed(fax_post: FaxMake, aws: Aws) -> None:
    worker = fax_post()
    worker.handle(fax_body(), group="faxes")
    (sent,) = aws.receive("fax.fifo")
    assert worker.handle(sent["Body"], group=sent["Attributes"]["MessageGroupId"]) is None
    assert (worker.line.submits, found(aws)["status"]) == (1, "sent")
    assert found(aws)["callback_url"] == TOLD


def test_a_fax_too_large_to_be_sent_on_is_failed_and_locks_no_line(fax_post: FaxMake, aws: Aws) -> None:
    worker = fax_post()
    assert worker.handle(fax_body(note="x" * (MAX_BYTES - 100)), group="faxes") is None
    assert (worker.line.calls, found(aws)["status"]) == ([], "failed")
    assert found(aws)["error"]["message"].startswith("item: is over 1 MiB as JSON")


@pytest.mark.parametrize("to", [LINE, "+1 617-555-1234"])
@pytest.mark.parametrize("group", [LINE, None])
def test_a_fax_under_its_own_group_or_on_a_queue_without_any_is_faxed(
    fax_post: FaxMake, aws: Aws, group: str | None, to: str
) -> None:
    worker = fax_post()
    assert worker.handle(fax_body(to=to), group=group) is None
    assert worker.line.submits == 1
    assert worker.line.requests[0].to == LINE


def test_what_could_not_be_sent_on_comes_back(fax_post: FaxMake, aws: Aws) -> None:
    down = client_error("ServiceUnavailable", status=503)
    sqs = Meddler(
        aws.sqs,
        send_message_batch=failing(down, down),
        change_message_visibility_batch=lambda _real, **_arguments: {},
    )
    worker = fax_post(sqs=sqs)
    assert worker.handle(fax_body(), group="faxes", receives=3) == 16
    assert (worker.line.calls, found(aws)) == ([], {})
    assert worker.handle(fax_body(), group="faxes", receives=4) is None
    assert len(aws.receive("fax.fifo")) == 1


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"to": "617-555-1234"}, "to: is not a number in international form"),
        ({"to": ...}, "to: is missing"),
        ({"pdf_url": "http://files.example/f-1.pdf"}, "pdf_url: is not an https URL"),
        ({"from": "+12025559999"}, "from: is not among this stage's fax numbers; use one of +12025550100"),
        ({"pdf_url": ..., "payload_ref": "s3://elsewhere/f-1.pdf"}, "payload_ref: 's3://elsewhere/f-1.pdf'"),
        ({"pdf_url": ..., "payload_ref": f"s3://{BUCKET}/" + "k" * 500_000}, "payload_ref: has 5"),
        ({"expires_at": f"2026-12-01T00:00:00.{'0' * 500_000}Z"}, "expires_at: '2026-12-01T00:00:00.000"),
        ({"attempt": 10**40}, "attempt: expected a number <= 999999999"),
    ],
)
def test_a_fax_that_cannot_be_sent_is_failed_with_its_reason_and_its_producer_can_be_told(
    fax_post: FaxMake, aws: Aws, changes: dict[str, Any], sentence: str
) -> None:
    worker = fax_post()
    assert worker.handle(fax_body(**changes)) is None
    assert (worker.line.calls, found(aws)["status"], found(aws)["error"]["code"]) == ([], "failed", "invalid")
    assert found(aws)["error"]["message"].startswith(sentence)
    assert (found(aws)["callback_url"], found(aws)["callbacks"]) == (TOLD, {})


@pytest.mark.parametrize("group", [LINE, "faxes"])
def test_a_fax_put_on_the_queue_before_its_time_is_refused_and_told_where_it_would_wait(
    fax_post: FaxMake, aws: Aws, group: str
) -> None:
    worker = fax_post()
    assert worker.handle(fax_body(send_at=iso(NOW + 61)), group=group) is None
    for sent_on in aws.receive("fax.fifo"):  # under its own line's group
        assert worker.handle(sent_on["Body"]) is None
    assert (worker.line.calls, found(aws)["status"]) == ([], "failed")
    assert found(aws)["error"]["message"] == (
        "send_at: lies ahead, and the fax queue lets nothing wait; put the fax into the mailbox, which does, "
        "or into the queue at its time"
    )
    assert found(aws)["callback_url"] == TOLD


@pytest.mark.parametrize("ahead", [-3600, 0, 59])
def test_a_fax_whose_time_has_come_is_faxed_though_clocks_may_differ(
    fax_post: FaxMake, aws: Aws, ahead: float
) -> None:
    worker = fax_post()
    assert worker.handle(fax_body(send_at=iso(NOW + ahead))) is None
    assert (worker.line.submits, found(aws)["status"]) == (1, "sent")


def test_a_bad_number_under_any_group_is_refused_and_not_sent_on(fax_post: FaxMake, aws: Aws) -> None:
    assert fax_post().handle(fax_body(to="wrong"), group="wrong") is None
    assert found(aws)["status"] == "failed"
    assert aws.receive("fax.fifo") == []


def test_a_callback_over_http_is_refused_where_the_stage_allows_none(fax_post: FaxMake, aws: Aws) -> None:
    body = fax_body(callback_url="http://app.example/faxes")
    assert fax_post().handle(body) is None
    assert found(aws)["error"]["message"].startswith("callback_url: has the scheme 'http'; use https")


def test_a_callback_over_http_is_taken_where_the_stage_allows_it(fax_post: FaxMake, aws: Aws) -> None:
    body = fax_body(callback_url="http://127.0.0.1:8080/faxes")
    assert fax_post(callback_schemes=["https", "http"], callback_ports=[]).handle(body) is None
    assert (found(aws)["status"], found(aws)["callback_url"]) == ("sent", "http://127.0.0.1:8080/faxes")


@pytest.mark.parametrize(
    "body",
    [
        *("no", "[]", {}, fax_body(fax_id=...), fax_body(fax_id=7), {"id": "f-1"}),
        pytest.param(fax_body(fax_id="f" * 2049), id="an id that no ledger item can have"),
        pytest.param(fax_item(event_type="f" * 1025), id="an event_type that no ledger item can have"),
        pytest.param('{"fax_id": "f-1", "copies": 1E+99999999999999999999}', id="a number beyond all"),
    ],
)
def test_a_malformed_body_comes_back_at_once_and_is_no_fax(
    fax_post: FaxMake, aws: Aws, counted: Counted, body: str | Item
) -> None:
    worker = fax_post()
    assert worker.handle(body) == 0
    assert worker.line.calls == []
    assert counted() == {"Malformed": 1}


NAMES = (
    *("fax_id", "id", "event_type", "to", "from", "pdf_url", "payload_ref", "callback_url", "lane", "topic"),
    *("send_at", "expires_at", "ttl", "attempt", "not_before", "note"),
)
SAYS: dict[str, Any] = {
    "long": "x" * 500_000,
    "a long time": f"2026-12-01T00:00:00.{'0' * 500_000}Z",
    "a long number": "+1617555" + "0" * 500_000,
    "a long place": f"s3://{BUCKET}/" + "x" * 500_000,
    "a long URL": "https://files.example/" + "x" * 500_000,
    "large": 10**300,
    "low": -(10**300),
    "odd": {"a": [None, True, "\uffff\0"]},
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("says", SAYS.values(), ids=SAYS)
def test_whatever_a_body_says_it_locks_no_line(fax_post: FaxMake, log: Log, name: str, says: Any) -> None:
    body = fax_body(**{name: says}, **({"pdf_url": ...} if name == "payload_ref" else {}))
    assert fax_post().handle(body) in {None, 0}  # finished with, or on its way to the dead letters
    assert "not delivered; it goes back to the queue" not in [line["message"] for line in log()]


def test_a_fax_with_its_pdf_in_our_bucket_reaches_the_provider_as_a_url(fax_post: FaxMake, aws: Aws) -> None:
    aws.s3.put_object(Bucket=BUCKET, Key="f-1.pdf", Body=b"%PDF")
    worker = fax_post()
    assert worker.handle(fax_body(pdf_url=..., payload_ref=f"s3://{BUCKET}/f-1.pdf")) is None
    assert "X-Amz-Signature" in worker.line.requests[0].media_url
    assert found(aws)["payload_ref"] == f"s3://{BUCKET}/f-1.pdf"
    assert "pdf_url" not in found(aws)


def test_what_a_retry_needs_is_in_the_ledger(fax_post: FaxMake, aws: Aws) -> None:
    body = fax_body(**{"from": "+12025550101"}, expires_at="2026-12-01T00:00:00Z")
    worker = fax_post()
    worker.handle(body)
    names = ("to", "pdf_url", "from", "expires_at", "callback_url")
    assert {name: found(aws)[name] for name in names} == {name: body[name] for name in names}
    assert worker.line.requests[0].sender == "+12025550101"


def test_a_bad_copy_does_not_end_a_fax_that_is_on_the_line(
    fax_post: FaxMake, fax_ledger: Ledger, aws: Aws, clock: FakeClock
) -> None:
    claim = fax_ledger.claim(fax())
    assert isinstance(claim, Claimed)
    fax_ledger.checkpoint(claim, "fake", "p-0", LINE)
    fax_ledger.hand_back(claim)
    worker = fax_post(FakeLine())
    assert worker.handle(fax_body(to="wrong"), group="wrong") == 0  # it must not lock a line meanwhile
    assert ("completedAt" in found(aws), found(aws)["provider_id"]) == (False, "p-0")
    assert worker.handle(fax_body()) is None
    assert (worker.line.calls, found(aws)["status"]) == (["fetch p-0"], "sent")


@pytest.mark.parametrize("attempt", [2, 7])
def test_an_attempt_that_no_other_leads_up_to_goes_to_the_dead_letters_without_locking_its_line(
    fax_post: FaxMake, aws: Aws, counted: Counted, attempt: int
) -> None:
    worker = fax_post()
    assert worker.handle(fax_body(attempt=attempt)) == 0
    assert (worker.line.calls, found(aws)) == ([], {})
    assert counted() == {"Malformed": 1}


def test_a_fax_that_another_provider_has_is_asked_of_nobody_and_not_sent_again(
    fax_post: FaxMake, fax_ledger: Ledger, aws: Aws, clock: FakeClock
) -> None:
    claim = fax_ledger.claim(fax())
    assert isinstance(claim, Claimed)
    fax_ledger.checkpoint(claim, "the-provider-before", "p-0", LINE)
    fax_ledger.hand_back(claim)
    worker = fax_post(longest_fax_seconds=7200)
    clock.advance(200)
    assert worker.handle(fax_body()) == 7000  # its line may be in use until then
    clock.advance(7000)
    assert worker.handle(fax_body()) == 20
    assert (worker.line.calls, found(aws)["provider_id"]) == ([], "p-0")


@pytest.mark.parametrize(
    "url", ["https://user:pw@app.example/faxes", "https://app.example:9443/faxes", "https://2130706433/x"]
)
def test_a_callback_that_could_never_be_sent_is_refused_before_the_fax_is(
    fax_post: FaxMake, aws: Aws, url: str
) -> None:
    worker = fax_post()
    assert worker.handle(fax_body(callback_url=url)) is None
    assert (worker.line.calls, found(aws)["status"]) == ([], "failed")
    assert found(aws)["error"]["message"].startswith("callback_url: ")


NARROWED: dict[str, Any] = {"callback_ports": [443]}
"""Settings by which the callback of a fax is not allowed any more."""
THERE = fax_body(callback_url="https://app.example:9443/faxes")


def test_a_fax_on_the_line_is_followed_whatever_settings_say_of_its_callback_by_then(
    fax_post: FaxMake, fax_ledger: Ledger, aws: Aws
) -> None:
    claim = fax_ledger.claim(fax(callback_url=THERE["callback_url"]))
    assert isinstance(claim, Claimed)
    fax_ledger.checkpoint(claim, "fake", "p-0", LINE)
    fax_ledger.hand_back(claim)
    worker = fax_post(**NARROWED)
    assert worker.handle(THERE) is None
    assert (worker.line.calls, found(aws)["status"]) == (["fetch p-0"], "sent")


def test_a_fax_that_was_begun_is_tried_again_whatever_settings_say_of_its_callback_by_then(
    fax_post: FaxMake, fax_ledger: Ledger, aws: Aws
) -> None:
    claim = fax_ledger.claim(fax(callback_url=THERE["callback_url"]))
    assert isinstance(claim, Claimed)
    fax_ledger.retry_later(claim, "busy", "Fax status: busy")
    worker = fax_post(**NARROWED)
    assert worker.handle({**THERE, "attempt": 2}) is None
    assert (worker.line.submits, found(aws)["status"]) == (1, "sent")


def test_a_fax_of_a_crash_is_looked_for_before_its_callback_is_judged(
    fax_post: FaxMake, fax_ledger: Ledger, aws: Aws, clock: FakeClock
) -> None:
    assert isinstance(fax_ledger.claim(fax(callback_url=THERE["callback_url"])), Claimed)
    clock.advance(FAX_LEASE)
    worker = fax_post(FakeLine(found=["p-7"]), **NARROWED)
    assert worker.handle(THERE) is None
    assert (worker.line.calls, found(aws)["status"]) == (["find", "fetch p-7"], "sent")
