"""A fax whose submit has an unknown outcome: evidence comes first, and a guess never leads to a second
submit."""

from typing import Any

import pytest

from mailroom.channels.fax.contract import Delivered
from mailroom.ledger.ledger import Ledger
from tests.support.unit.fakes import client_error
from tests.support.unit.fax import FAX_LEASE, OURS, FakeLine, ends_after, entry, fax, fax_body, on_line
from tests.support.unit.fax_post import FaxMake
from tests.support.unit.post import Counted
from tests.support.unit.shared import NOW, NOW_MS, Aws, FakeClock, Item, claimed

WAIT = int(FAX_LEASE) + 1
NOT_OURS = {"from": "+12025559999"}
"""A number that the stage does not have, or no longer has."""


@pytest.fixture
def crashed(aws: Aws, fax_ledger: Ledger, clock: FakeClock) -> None:
    """Let a worker crash after its claim of the fax, and its lease end."""
    claimed(fax_ledger, fax(), OURS)
    clock.advance(FAX_LEASE)


@pytest.mark.usefixtures("crashed")
@pytest.mark.parametrize("body", [fax_body(), fax_body(**NOT_OURS)], ids=["ours", "number given up"])
def test_a_fax_that_the_look_up_finds_is_polled_and_not_submitted_again(
    fax_post: FaxMake, aws: Aws, counted: Counted, body: Item
) -> None:
    line = FakeLine(Delivered(), finds=["p-7"])
    assert fax_post(line).handle(body, receives=2) is None
    assert line.calls == ["find", "fetch p-7"]
    assert (entry(aws)["status"], entry(aws)["provider_id"]) == ("delivered", "p-7")
    assert counted() == {"Recovered": 1, "Sent": 1}


@pytest.mark.usefixtures("crashed")
def test_a_fax_that_the_look_up_does_not_find_is_submitted_again(fax_post: FaxMake, aws: Aws) -> None:
    line = FakeLine(Delivered(), finds=[])
    assert fax_post(line).handle(fax_body(), receives=2) is None
    assert line.calls == ["find", "submit", "fetch p-1"]
    assert entry(aws)["status"] == "delivered"


@pytest.mark.usefixtures("crashed")
@pytest.mark.parametrize("on_unknown", ["hold", "resend"])
def test_after_a_failed_look_up_the_fax_is_not_submitted_and_its_line_is_locked_for_a_back_off(
    fax_post: FaxMake, aws: Aws, on_unknown: str
) -> None:
    line = FakeLine(finds=client_error("ServiceUnavailable", status=503))
    wait = fax_post(line, on_unknown=on_unknown).handle(fax_body(), receives=2)
    assert wait is not None
    assert 0 < wait < 60
    assert line.calls == ["find"]
    assert entry(aws).keys().isdisjoint({"startedAt", "completedAt"})
    assert entry(aws)["unsettled_tries"][0].startswith(f"{NOW_MS} ")


@pytest.mark.usefixtures("crashed")
def test_a_fax_with_an_unknown_sender_number_fails_as_invalid_if_the_look_up_finds_no_earlier_fax(
    fax_post: FaxMake, aws: Aws
) -> None:
    line = FakeLine(finds=[])
    assert fax_post(line).handle(fax_body(**NOT_OURS), receives=2) is None
    assert line.calls == ["find"]
    assert (entry(aws)["status"], entry(aws)["error"]["code"]) == ("failed", "invalid")
    assert entry(aws)["error"]["message"].startswith("from: is not among this stage's fax numbers")


@pytest.mark.usefixtures("crashed")
def test_a_fax_of_unknown_outcome_becomes_a_dead_letter_only_after_the_longest_transmission_time(
    fax_post: FaxMake, clock: FakeClock
) -> None:
    """A dead letter frees the line of its fax."""
    line = FakeLine(finds=["p-7", "p-8"])
    worker = fax_post(line, on_unknown="resend", resend_delays=(), longest_fax_seconds=7200)
    wait = worker.handle(fax_body(), receives=2)
    assert wait is not None
    assert clock() + wait > NOW + 7200
    clock.advance(wait)
    assert worker.handle(fax_body(), receives=3) == 0
    assert line.submits == 0


@pytest.mark.parametrize(
    ("account", "finds"),
    [(OURS, ["p-7", "p-8"]), *((other, []) for other in ("fake/another", "another/ours", "fake", ""))],
    ids=["several found", "another account", "another provider", "no account", "nothing known"],
)
def test_if_on_unknown_is_hold_a_fax_that_the_look_up_cannot_identify_fails_with_outcome_unknown(
    fax_post: FaxMake,
    fax_ledger: Ledger,
    aws: Aws,
    clock: FakeClock,
    counted: Counted,
    account: str,
    finds: list[str],
) -> None:
    claimed(fax_ledger, fax(), account)
    clock.advance(FAX_LEASE)
    line = FakeLine(Delivered(), finds=finds)
    assert fax_post(line, on_unknown="hold").handle(fax_body(), receives=2) is None
    assert line.calls == ["find"]
    assert (entry(aws)["status"], entry(aws)["error"]["code"]) == ("failed", "outcome_unknown")
    assert counted() == {"Held": 1}


def test_a_fax_found_in_this_account_is_polled_even_if_another_account_was_tried_too(
    fax_post: FaxMake, fax_ledger: Ledger, aws: Aws, clock: FakeClock
) -> None:
    claimed(fax_ledger, fax(), "another/account")
    clock.advance(FAX_LEASE)
    line = FakeLine(Delivered(), finds=["p-7"])
    assert fax_post(line).handle(fax_body(), receives=2) is None
    assert (line.submits, entry(aws)["status"]) == (0, "delivered")


def test_after_a_failed_look_up_the_next_look_up_searches_from_the_start_of_the_first_try(
    fax_post: FaxMake, clock: FakeClock, aws: Aws
) -> None:
    fax_post(FakeLine(submits=[TimeoutError("no answer")])).handle(fax_body())
    clock.advance(WAIT)
    failing = FakeLine(finds=TimeoutError("no answer"))
    wait = fax_post(failing).handle(fax_body(), receives=2)
    clock.advance(wait or 0)
    line = FakeLine(Delivered(), finds=["p-1"])
    assert fax_post(line).handle(fax_body(), receives=3) is None
    assert [since for _, _, since in line.searches] == [NOW - 5]
    assert (line.submits, entry(aws)["status"]) == (0, "delivered")


@pytest.mark.usefixtures("crashed")
def test_a_fax_that_a_look_up_found_is_polled_in_the_next_invocation_without_another_look_up(
    fax_post: FaxMake, aws: Aws, clock: FakeClock
) -> None:
    line = FakeLine(script=ends_after(clock, 1000, Delivered()), finds=["p-7"])
    worker = fax_post(line)
    assert [worker.handle(fax_body(), receives=number) for number in (2, 3)] == [5, None]
    assert (line.calls.count("find"), line.submits) == (1, 0)
    assert entry(aws)["provider_ids"] == ["p-7"]


def test_a_look_up_does_not_mistake_another_fax_to_the_same_number_for_this_fax(
    fax_post: FaxMake, fax_ledger: Ledger, clock: FakeClock, aws: Aws
) -> None:
    fax_ledger.complete(on_line(fax_ledger, provider_id="p-5", id="before"), "fake", "p-5")
    clock.advance(7200)  # as long as a fax may be on the line
    claimed(fax_ledger, fax())
    clock.advance(FAX_LEASE)
    line = FakeLine(Delivered(), finds=["p-5", "p-7"])
    assert fax_post(line).handle(fax_body(), receives=2) is None
    assert line.calls == ["find", "fetch p-7"]


def test_a_look_up_does_not_mistake_an_earlier_attempt_for_this_attempt(
    fax_post: FaxMake, fax_ledger: Ledger, clock: FakeClock, aws: Aws
) -> None:
    fax_ledger.retry_later(on_line(fax_ledger, provider_id="p-1"), "busy", "Fax status: busy")
    clock.advance(1)
    claimed(fax_ledger, fax(attempt=2), OURS)
    clock.advance(FAX_LEASE)
    line = FakeLine(Delivered(), finds=["p-1"])
    assert fax_post(line).handle(fax_body(attempt=2), receives=2) is None
    assert line.calls == ["find", "submit", "fetch p-1"]
    assert (entry(aws)["status"], entry(aws)["attempts"]) == ("delivered", 2)


def test_a_worker_that_lost_the_claim_while_polling_a_fax_does_not_record_the_faxs_end(
    fax_post: FaxMake, fax_ledger: Ledger, clock: FakeClock, aws: Aws
) -> None:
    class Slow(FakeLine):
        def fetch(self, provider_id: str) -> Any:
            clock.advance(FAX_LEASE)
            claimed(fax_ledger, fax())
            return super().fetch(provider_id)

    assert fax_post(Slow(Delivered())).handle(fax_body()) is not None
    assert (entry(aws)["status"], entry(aws)["provider_id"]) == ("sending", "p-1")
