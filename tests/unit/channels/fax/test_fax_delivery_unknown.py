"""A fax whose submit was not heard of again: evidence first, and no second one on a guess."""

from typing import Any

import pytest

from mailroom.channels.fax.contract import Delivered
from mailroom.ledger.claims import Claimed
from mailroom.ledger.ledger import Ledger
from tests.support.unit.fakes import client_error
from tests.support.unit.fax import FAX_LEASE, LINE, OURS, FakeLine, ends_after, fax, fax_body, found
from tests.support.unit.fax_post import FaxMake
from tests.support.unit.post import Counted
from tests.support.unit.shared import NOW, NOW_MS, Aws, FakeClock

WAIT = int(FAX_LEASE) + 1


@pytest.fixture
def crashed(aws: Aws, fax_ledger: Ledger, clock: FakeClock) -> None:
    """A worker claimed the fax and was not heard of again; its lease is over."""
    assert isinstance(fax_ledger.claim(fax(), OURS), Claimed)
    clock.advance(FAX_LEASE)


def test_a_submit_without_an_answer_keeps_the_claim_and_the_line(
    fax_post: FaxMake, aws: Aws, counted: Counted
) -> None:
    worker = fax_post(FakeLine(submits=[TimeoutError("no answer")]))
    assert worker.handle(fax_body()) == WAIT
    assert found(aws)["startedAt"] == NOW_MS
    assert counted() == {"Unknown": 1}


@pytest.mark.usefixtures("crashed")
def test_the_one_that_the_provider_has_is_followed_and_not_sent_again(
    fax_post: FaxMake, aws: Aws, counted: Counted
) -> None:
    line = FakeLine(Delivered(), found=["p-7"])
    assert fax_post(line).handle(fax_body(), receives=2) is None
    assert line.calls == ["find", "fetch p-7"]
    assert (found(aws)["status"], found(aws)["provider_id"]) == ("sent", "p-7")
    assert counted() == {"Recovered": 1, "Sent": 1}


@pytest.mark.usefixtures("crashed")
def test_the_provider_is_asked_for_what_came_after_the_first_start(fax_post: FaxMake) -> None:
    line = FakeLine(Delivered())
    fax_post(line).handle(fax_body(), receives=2)
    assert line.searches == [(LINE, "Zi0x.1", NOW - 5)]


@pytest.mark.usefixtures("crashed")
def test_what_the_provider_never_got_is_submitted(fax_post: FaxMake, aws: Aws) -> None:
    line = FakeLine(Delivered(), found=[])
    assert fax_post(line).handle(fax_body(), receives=2) is None
    assert line.calls == ["find", "submit", "fetch p-1"]
    assert found(aws)["status"] == "sent"


@pytest.mark.usefixtures("crashed")
def test_of_several_that_it_could_be_none_is_taken_and_none_is_sent(
    fax_post: FaxMake, aws: Aws, counted: Counted
) -> None:
    line = FakeLine(Delivered(), found=["p-7", "p-8"])
    assert fax_post(line, on_unknown="hold").handle(fax_body(), receives=2) is None
    assert line.calls == ["find"]
    assert (found(aws)["status"], found(aws)["error"]["code"]) == ("failed", "outcome_unknown")
    assert counted() == {"Held": 1}


@pytest.mark.usefixtures("crashed")
def test_of_several_that_it_could_be_a_stage_that_rather_sends_twice_sends_again(
    fax_post: FaxMake, aws: Aws
) -> None:
    line = FakeLine(Delivered(), found=["p-7", "p-8"])
    assert fax_post(line, on_unknown="resend").handle(fax_body(), receives=2) is None
    assert line.submits == 1


@pytest.mark.usefixtures("crashed")
@pytest.mark.parametrize("on_unknown", ["hold", "resend"])
def test_a_look_up_that_fails_submits_nothing_ends_nothing_and_locks_the_line_for_a_back_off(
    fax_post: FaxMake, aws: Aws, on_unknown: str
) -> None:
    line = FakeLine(found=client_error("ServiceUnavailable", status=503))
    wait = fax_post(line, on_unknown=on_unknown).handle(fax_body(), receives=2)
    assert wait is not None
    assert 0 < wait < 60
    assert line.calls == ["find"]
    assert found(aws).keys().isdisjoint({"startedAt", "completedAt"})
    assert found(aws)["unsettled_tries"][0].startswith(f"{NOW_MS} ")


NOT_OURS = {"from": "+12025559999"}
"""A number that is not among the stage's, or is not any more."""


@pytest.mark.usefixtures("crashed")
def test_a_fax_from_a_number_that_is_not_ours_ends_also_where_its_refusal_was_not_recorded(
    fax_post: FaxMake, aws: Aws
) -> None:
    line = FakeLine(found=[])
    assert fax_post(line).handle(fax_body(**NOT_OURS), receives=2) is None
    assert line.calls == ["find"]
    assert (found(aws)["status"], found(aws)["error"]["code"]) == ("failed", "invalid")
    assert found(aws)["error"]["message"].startswith("from: is not among this stage's fax numbers")


@pytest.mark.usefixtures("crashed")
def test_a_fax_whose_number_the_stage_has_given_up_since_is_found_and_followed(
    fax_post: FaxMake, aws: Aws
) -> None:
    line = FakeLine(Delivered(), found=["p-7"])
    assert fax_post(line).handle(fax_body(**NOT_OURS), receives=2) is None
    assert line.calls == ["find", "fetch p-7"]
    assert (found(aws)["status"], found(aws)["provider_id"]) == ("sent", "p-7")


@pytest.mark.parametrize("account", ["fake/another", "another/ours", "fake", ""])
def test_what_another_account_may_have_is_not_submitted_though_this_one_never_got_it(
    fax_post: FaxMake, fax_ledger: Ledger, aws: Aws, clock: FakeClock, account: str
) -> None:
    assert isinstance(fax_ledger.claim(fax(), account), Claimed)
    clock.advance(FAX_LEASE)
    line = FakeLine(found=[])
    assert fax_post(line, on_unknown="hold").handle(fax_body(), receives=2) is None
    assert line.calls == ["find"]
    assert (found(aws)["status"], found(aws)["error"]["code"]) == ("failed", "outcome_unknown")


def test_what_this_account_has_is_followed_whoever_else_may_have_been_asked(
    fax_post: FaxMake, fax_ledger: Ledger, aws: Aws, clock: FakeClock
) -> None:
    assert isinstance(fax_ledger.claim(fax(), "another/account"), Claimed)
    clock.advance(FAX_LEASE)
    line = FakeLine(Delivered(), found=["p-7"])
    assert fax_post(line).handle(fax_body(), receives=2) is None
    assert (line.submits, found(aws)["status"]) == (0, "sent")


def test_two_crashes_in_a_row_are_looked_into_from_the_first_start_on(
    fax_post: FaxMake, clock: FakeClock, aws: Aws
) -> None:
    fax_post(FakeLine(submits=[TimeoutError("no answer")])).handle(fax_body())
    clock.advance(WAIT)
    failing = FakeLine(found=TimeoutError("no answer"))
    wait = fax_post(failing).handle(fax_body(), receives=2)
    clock.advance(wait or 0)
    line = FakeLine(Delivered(), found=["p-1"])
    assert fax_post(line).handle(fax_body(), receives=3) is None
    assert [since for _, _, since in line.searches] == [NOW - 5]
    assert (line.submits, found(aws)["status"]) == (0, "sent")


@pytest.mark.usefixtures("crashed")
def test_a_fax_found_by_a_look_up_is_resumed_by_its_id_from_then_on(
    fax_post: FaxMake, aws: Aws, clock: FakeClock
) -> None:
    line = FakeLine(script=ends_after(clock, 1000, Delivered()), found=["p-7"])
    worker = fax_post(line)
    assert [worker.handle(fax_body(), receives=at) for at in (2, 3)] == [5, None]
    assert (line.calls.count("find"), line.submits) == (1, 0)
    assert found(aws)["provider_ids"] == ["p-7"]


def other(ledger: Ledger, id_: str, provider_id: str) -> None:
    claim = ledger.claim(fax(id=id_))
    assert isinstance(claim, Claimed)
    ledger.checkpoint(claim, "fake", provider_id, LINE)
    ledger.complete(claim, "fake", provider_id)


def test_the_faxes_of_others_on_the_line_are_not_taken_for_ours(
    fax_post: FaxMake, fax_ledger: Ledger, clock: FakeClock, aws: Aws
) -> None:
    other(fax_ledger, "before", "p-5")
    clock.advance(7200)  # it was on the line for as long as a fax may be
    assert isinstance(fax_ledger.claim(fax()), Claimed)
    clock.advance(FAX_LEASE)
    line = FakeLine(Delivered(), found=["p-5", "p-7"])
    assert fax_post(line).handle(fax_body(), receives=2) is None
    assert line.calls == ["find", "fetch p-7"]


def test_an_earlier_attempt_of_the_same_fax_is_not_taken_for_this_one(
    fax_post: FaxMake, fax_ledger: Ledger, clock: FakeClock, aws: Aws
) -> None:
    first = fax_ledger.claim(fax())
    assert isinstance(first, Claimed)
    fax_ledger.checkpoint(first, "fake", "p-1", LINE)
    fax_ledger.retry_later(first, "busy", "Fax status: busy")
    clock.advance(1)
    second = fax_ledger.claim(fax(attempt=2), OURS)
    assert isinstance(second, Claimed)
    clock.advance(FAX_LEASE)
    line = FakeLine(Delivered(), found=["p-1"])
    assert fax_post(line).handle(fax_body(attempt=2), receives=2) is None
    assert line.calls == ["find", "submit", "fetch p-1"]
    assert (found(aws)["status"], found(aws)["attempts"]) == ("sent", 2)


def test_a_worker_that_lost_its_claim_while_it_followed_ends_nothing(
    fax_post: FaxMake, fax_ledger: Ledger, clock: FakeClock, aws: Aws
) -> None:
    class Slow(FakeLine):
        def fetch(self, provider_id: str) -> Any:
            clock.advance(FAX_LEASE)
            assert isinstance(fax_ledger.claim(fax()), Claimed)
            return super().fetch(provider_id)

    assert fax_post(Slow(Delivered())).handle(fax_body()) is not None
    assert (found(aws)["status"], found(aws)["provider_id"]) == ("sending", "p-1")
