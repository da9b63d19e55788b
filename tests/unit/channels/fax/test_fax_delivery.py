"""A fax's way: submitted once, followed until it ends, over as many invocations as that takes."""

from collections.abc import Callable
from typing import Any

import pytest

from mailroom.channels.fax.contract import Delivered, FaxState, Pending
from mailroom.ledger.claims import Claimed
from mailroom.ledger.ledger import Ledger
from tests.support.unit.events import lines_about
from tests.support.unit.fakes import Meddler, client_error
from tests.support.unit.fax import LINE, SENDING, FakeLine, ends_after, fax, fax_body, fax_item, found
from tests.support.unit.fax_post import FUNCTION_SECONDS, FaxMake
from tests.support.unit.post import Counted, Log
from tests.support.unit.shared import NOW, NOW_MS, Aws, FakeClock, Item


@pytest.mark.parametrize("body", [fax_body(), fax_item()])
def test_a_fax_is_submitted_once_and_followed_until_it_is_delivered(
    fax_post: FaxMake, aws: Aws, clock: FakeClock, counted: Counted, body: Item
) -> None:
    line = FakeLine(Pending("queued"), SENDING, Delivered())
    assert fax_post(line).handle(body) is None
    assert line.calls == ["submit", "fetch p-1", "fetch p-1", "fetch p-1"]
    assert clock.slept == [5, 5]
    assert (found(aws)["status"], found(aws)["provider"], found(aws)["provider_id"]) == (
        "sent",
        "fake",
        "p-1",
    )
    assert (found(aws)["to"], found(aws)["attempts"]) == (LINE, 1)
    assert counted() == {"Submitted": 1, "Sent": 1}


def test_a_fax_that_was_delivered_is_not_sent_by_a_second_copy(fax_post: FaxMake, counted: Counted) -> None:
    worker = fax_post()
    worker.handle(fax_body())
    assert worker.handle(fax_item()) is None
    assert worker.line.submits == 1
    assert counted()["Duplicates"] == 1


def test_the_providers_id_is_in_the_ledger_before_the_first_poll(fax_post: FaxMake, aws: Aws) -> None:
    seen = []

    class Watched(FakeLine):
        def fetch(self, provider_id: str) -> FaxState:
            seen.append(found(aws))
            return super().fetch(provider_id)

    fax_post(Watched(Delivered())).handle(fax_body())
    assert (seen[0]["provider_id"], seen[0]["line"], seen[0]["submittedAt"]) == ("p-1", LINE, NOW_MS)
    assert (seen[0]["status"], seen[0]["provider_ids"]) == ("sending", ["p-1"])


def test_a_poll_that_fails_says_nothing_about_the_fax(fax_post: FaxMake, aws: Aws, counted: Counted) -> None:
    down = client_error("ServiceUnavailable", status=503)
    line = FakeLine(down, TimeoutError("slow"), SENDING, down, Delivered())
    assert fax_post(line).handle(fax_body()) is None
    assert (line.submits, found(aws)["status"]) == (1, "sent")
    assert counted()["PollErrors"] == 3


def test_near_the_deadline_a_fax_is_handed_back_and_the_next_delivery_resumes_it(
    fax_post: FaxMake, aws: Aws, clock: FakeClock, counted: Counted
) -> None:
    line = FakeLine(script=ends_after(clock, 1000, Delivered()))
    worker = fax_post(line)
    assert worker.handle(fax_body()) == 5
    assert FUNCTION_SECONDS - 40 <= clock() - NOW < FUNCTION_SECONDS - 30  # a poll and its record fit in
    assert ("startedAt" in found(aws), found(aws)["provider_id"]) == (False, "p-1")
    assert counted()["HandedBack"] == 1
    assert worker.handle(fax_body(), receives=2) is None
    assert (line.submits, found(aws)["status"], found(aws)["attempts"]) == (1, "sent", 1)
    assert "find" not in line.calls


def test_a_fax_of_forty_minutes_takes_three_invocations_and_one_submit(
    fax_post: FaxMake, aws: Aws, clock: FakeClock
) -> None:
    line = FakeLine(script=ends_after(clock, 2400, Delivered()))
    worker = fax_post(line)
    assert [worker.handle(fax_body(), receives=at) for at in (1, 2, 3)] == [5, 5, None]
    assert (line.submits, found(aws)["status"]) == (1, "sent")


def test_the_worker_never_outlives_its_function(fax_post: FaxMake, clock: FakeClock) -> None:
    worker = fax_post(FakeLine(SENDING))
    for receives in range(1, 4):
        start = clock()
        worker.handle(fax_body(), receives=receives)
        assert clock() - start <= FUNCTION_SECONDS - 30  # the last answer's record takes up to ten


def test_a_fax_that_was_stopped_by_a_crash_while_it_was_followed_is_resumed(
    fax_post: FaxMake, fax_ledger: Ledger, aws: Aws, clock: FakeClock
) -> None:
    claim = fax_ledger.claim(fax())
    assert isinstance(claim, Claimed)
    fax_ledger.checkpoint(claim, "fake", "p-0", LINE)
    line = FakeLine(Delivered())
    assert fax_post(line).handle(fax_body()) == 961
    clock.advance(961)
    assert fax_post(line).handle(fax_body(), receives=2) is None
    assert line.calls == ["fetch p-0"]
    assert (found(aws)["status"], found(aws)["provider_id"]) == ("sent", "p-0")


def test_no_invocation_ends_with_a_fax_that_was_submitted_and_not_recorded(
    fax_post: FaxMake, aws: Aws, clock: FakeClock, log: Log
) -> None:
    def no_checkpoint(real: Callable[..., Any], **arguments: Any) -> Any:
        if "submittedAt = " in arguments["UpdateExpression"]:
            raise client_error("InternalServerError", status=500)
        return real(**arguments)

    line = FakeLine(Delivered(), found=["p-1"])
    worker = fax_post(line, dynamodb=Meddler(aws.dynamodb, update_item=no_checkpoint))
    assert worker.handle(fax_body()) == 961
    assert lines_about(log(), "submitted, but not recorded")[0]["provider_id"] == "p-1"
    clock.advance(961)
    assert fax_post(line).handle(fax_body(), receives=2) is None
    assert (line.submits, found(aws)["status"], found(aws)["provider_id"]) == (1, "sent", "p-1")
