"""The delivery of a fax: one submit, then polls until the fax ends, in as many invocations as that takes."""

from collections.abc import Callable
from typing import Any

import pytest

from mailroom.channels.fax.contract import Delivered, FaxState, Pending
from mailroom.ledger.ledger import Ledger
from tests.support.unit.events import lines_about
from tests.support.unit.fakes import Meddler, client_error
from tests.support.unit.fax import FAX_KEY, LINE, SENDING, FakeLine, ends_after, entry, fax_body, fax_item
from tests.support.unit.fax_post import FUNCTION_SECONDS, FaxMake
from tests.support.unit.post import Counted, Log
from tests.support.unit.shared import BUCKET, NOW, NOW_MS, Aws, FakeClock, Item
from tests.support.unjudged import others


@pytest.mark.parametrize("body", [fax_body(), fax_item()])
def test_a_fax_is_submitted_once_and_polled_until_it_is_delivered(
    fax_post: FaxMake, aws: Aws, clock: FakeClock, counted: Counted, body: Item
) -> None:
    line = FakeLine(Pending("queued"), SENDING, Delivered())
    worker = fax_post(line)
    for copy in (body, fax_item()):
        assert worker.handle(copy) is None
        assert line.calls == ["submit", "fetch p-1", "fetch p-1", "fetch p-1"]
    assert clock.slept == [5, 5]
    expected = {"status": "delivered", "provider": "fake", "provider_id": "p-1", "to": LINE, "attempts": 1}
    assert expected.items() <= entry(aws).items()
    assert counted() == {"Submitted": 1, "Sent": 1, "Duplicates": 1}


SECOND = NOW_MS // 1000 * 1000


@pytest.mark.parametrize(
    ("pages", "at", "delivered_at"),
    [
        ("3", "2026-11-21T08:59:57Z", SECOND - 3_000 + 999),
        (3, "2026-11-21T08:59:59", SECOND - 1),
        (3, "2026-11-21T09:00:00Z", NOW_MS),
        (3, "2026-11-21T10:00:00.750+01:00", NOW_MS),
        (3, "2026-11-21T09:00:07Z", SECOND + 7_000),
    ],
)
def test_a_delivered_fax_is_recorded_with_the_pages_the_sender_and_the_time_of_the_providers_report(
    fax_post: FaxMake, aws: Aws, pages: object, at: str, delivered_at: int
) -> None:
    """The time is the provider's second. Within that second, it is not before the submit, if possible."""
    fax_post(FakeLine(Delivered(pages, "+12025550100", at))).handle(fax_body())
    known = {"status": "delivered", "pages": 3, "sent_from": "+12025550100", "deliveredAt": delivered_at}
    assert known.items() <= entry(aws).items()
    assert [each["status"] for each in entry(aws)["history"]] == ["delivered"]


@pytest.mark.parametrize("pages", [None, "", "many", -1, 2.5, [3]])
@pytest.mark.parametrize("at", [None, "", "soon", "0001-01-01T00:00:00+23:59", 7])
def test_a_fax_is_recorded_as_delivered_without_pages_and_time_if_its_provider_reports_invalid_ones(
    fax_post: FaxMake, aws: Aws, pages: object, at: object
) -> None:
    assert fax_post(FakeLine(Delivered(pages, None, at))).handle(fax_body()) is None
    assert entry(aws)["status"] == "delivered"
    assert not {"pages", "sent_from", "deliveredAt"} & entry(aws).keys()


def test_a_reopened_fax_does_not_keep_the_pages_the_sender_and_the_time_of_its_earlier_delivery(
    fax_post: FaxMake, fax_ledger: Ledger, aws: Aws
) -> None:
    fax_post(FakeLine(Delivered(3, "+12025550100", "2026-11-21T09:00:07Z"))).handle(fax_body())
    assert fax_ledger.reopen(FAX_KEY, entry(aws), arrived=True) == 2
    assert not {"pages", "sent_from", "deliveredAt"} & entry(aws).keys()


def test_a_fax_with_a_payload_is_submitted_with_a_url_of_the_pdf_in_the_payload_bucket(
    fax_post: FaxMake, aws: Aws
) -> None:
    aws.s3.put_object(Bucket=BUCKET, Key="f-1.pdf", Body=b"%PDF")
    line = FakeLine(Delivered())
    body = fax_body(pdf_url=..., payload_ref=f"s3://{BUCKET}/f-1.pdf")
    assert fax_post(line).handle(body) is None
    (request,) = line.requests
    assert "/f-1.pdf?" in request.media_url
    assert entry(aws)["status"] == "delivered"


def test_the_ledger_has_the_providers_fax_id_before_the_first_poll(fax_post: FaxMake, aws: Aws) -> None:
    entries = []

    class Watched(FakeLine):
        def fetch(self, provider_id: str) -> FaxState:
            with others():
                entries.append(entry(aws))
            return super().fetch(provider_id)

    fax_post(Watched(Delivered())).handle(fax_body())
    expected = {"status": "sending", "provider_id": "p-1", "provider_ids": ["p-1"], "line": LINE}
    assert {**expected, "submittedAt": NOW_MS}.items() <= entries[0].items()


def test_a_fax_is_polled_again_after_failed_polls_until_it_is_delivered(
    fax_post: FaxMake, aws: Aws, counted: Counted
) -> None:
    down = client_error("ServiceUnavailable", status=503)
    line = FakeLine(down, TimeoutError("slow"), SENDING, down, Delivered())
    assert fax_post(line).handle(fax_body()) is None
    assert (line.submits, entry(aws)["status"]) == (1, "delivered")
    assert counted()["PollErrors"] == 3


def test_near_the_functions_deadline_a_fax_returns_to_the_queue_and_the_next_receive_resumes_it(
    fax_post: FaxMake, aws: Aws, clock: FakeClock, counted: Counted
) -> None:
    line = FakeLine(script=ends_after(clock, 1000, Delivered()))
    worker = fax_post(line)
    assert worker.handle(fax_body()) == 5
    assert (
        FUNCTION_SECONDS - 40 <= clock() - NOW < FUNCTION_SECONDS - 30
    )  # enough time for a poll and a record
    assert ("startedAt" in entry(aws), entry(aws)["provider_id"]) == (False, "p-1")
    assert counted()["HandedBack"] == 1
    assert worker.handle(fax_body(), receives=2) is None
    assert (line.submits, entry(aws)["status"], entry(aws)["attempts"]) == (1, "delivered", 1)
    assert "find" not in line.calls


def test_a_fax_whose_submit_was_not_recorded_is_found_by_the_look_up_and_not_sent_again(
    fax_post: FaxMake, aws: Aws, clock: FakeClock, log: Log
) -> None:
    def no_checkpoint(real: Callable[..., Any], **arguments: Any) -> Any:
        if "submittedAt = " in arguments["UpdateExpression"]:
            raise client_error("InternalServerError", status=500)
        return real(**arguments)

    line = FakeLine(Delivered(), finds=["p-1"])
    worker = fax_post(line, dynamodb=Meddler(aws.dynamodb, update_item=no_checkpoint))
    assert worker.handle(fax_body()) == 961
    assert lines_about(log(), "submitted, but not recorded")[0]["provider_id"] == "p-1"
    clock.advance(961)
    assert fax_post(line).handle(fax_body(), receives=2) is None
    assert (line.submits, entry(aws)["status"], entry(aws)["provider_id"]) == (1, "delivered", "p-1")
