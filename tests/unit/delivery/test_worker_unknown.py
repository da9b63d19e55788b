"""Unknown outcomes: evidence first, then the channel's setting `on_unknown`."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from mailroom.budget import Budget
from mailroom.channels.mail.contract import Mail
from mailroom.dead_letters.cause import Subject, cause_of
from mailroom.dead_letters.queue import DeadLetter
from mailroom.delivery.attempt import Attempt
from mailroom.errors import ConnectError, NotSent, OutcomeUnknown
from mailroom.ledger.ledger import Ledger
from mailroom.ledger.observer import observe
from mailroom.message.outcome import (
    ANY_ACCOUNT,
    Misconfigured,
    NotFound,
    NotReady,
    Retry,
    Sent,
    Unknowable,
)
from tests.support.told import ses_event
from tests.support.unit.events import lines_about
from tests.support.unit.fakes import FakeAdapter, Meddler, client_error
from tests.support.unit.post import Counted, Log, Make, Post
from tests.support.unit.shared import BUDGETS, KEY, LEASE, NOW, NOW_MS, Aws, FakeClock, claimed, crash, item


def test_a_message_with_an_unknown_outcome_keeps_its_claim_and_is_retried_after_the_lease(
    make_post: Make, aws: Aws, clock: FakeClock, counted: Counted
) -> None:
    worker = make_post(ConnectionResetError("gone"))
    assert worker.handle(item()) == {"r-0": int(LEASE) + 1}
    assert aws.item()["startedAt"] == NOW_MS
    assert counted() == {"Unknown": 1}
    clock.advance(30)
    assert worker.handle(item()) == {"r-0": int(LEASE) - 30 + 1}
    assert worker.submitted == ["m-1"]


A_HUNDRED_A_DAY = (("0001-01-01", 100),)


def test_a_message_that_the_look_up_finds_after_a_crash_is_recorded_as_sent_and_not_submitted(
    make_post: Make, ledger: Ledger, clock: FakeClock, aws: Aws, counted: Counted
) -> None:
    crash(ledger, clock)
    worker = make_post(evidence=Sent("p-0"))
    assert worker.handle(item()) == {}
    assert (worker.adapter.looked_up, worker.submitted) == ([NOW_MS], [])
    assert (aws.item()["status"], aws.item()["provider_id"]) == ("sent", "p-0")
    assert counted() == {"Recovered": 1}


@pytest.mark.parametrize("account", [ANY_ACCOUNT, "another/account"])
def test_a_message_of_a_channel_without_accounts_is_submitted_again_if_a_look_up_does_not_find_it(
    make_post: Make, ledger: Ledger, clock: FakeClock, aws: Aws, account: str | None
) -> None:
    """A webhook may come twice: its receiver drops the second one by its id."""
    crash(ledger, clock, account=account)
    worker = make_post(evidence=NotFound(), on_unknown="hold")
    assert worker.handle(item()) == {}
    assert (worker.submitted, aws.item()["provider_id"]) == (["m-1"], "p-1")


def test_if_on_unknown_is_resend_a_message_is_sent_again_after_an_inconclusive_look_up(
    make_post: Make, ledger: Ledger, clock: FakeClock, aws: Aws, counted: Counted, log: Log
) -> None:
    crash(ledger, clock)
    worker = make_post(evidence=Unknowable(), on_unknown="resend")
    assert worker.handle(item()) == {}
    assert (worker.submitted, aws.item()["status"]) == (["m-1"], "sent")
    assert counted() == {"Resent": 1, "Sent": 1}
    assert lines_about(log(), "resending")[0]["since"] == NOW_MS


RECEIVES = 40
"""More receives than a queue allows before a dead letter, or than an outage of six hours takes."""


def receive_times(worker: Post, clock: FakeClock, times: int = RECEIVES) -> None:
    """Deliver the message each time that its visibility ends."""
    for _ in range(times):
        (wait,) = worker.handle(item()).values()
        clock.advance(max(wait, 1))


def test_a_message_is_submitted_four_times_at_growing_intervals_if_the_providers_responses_are_lost(
    make_post: Make, clock: FakeClock, aws: Aws, counted: Counted
) -> None:
    began = []
    worker = make_post(ConnectionResetError("gone"), prepare=lambda _: began.append(clock() - NOW))
    receive_times(worker, clock)
    assert worker.submitted == ["m-1"] * 4
    lease = LEASE + 1
    assert began == [0, lease, pytest.approx(lease + 1_800, abs=2), pytest.approx(lease + 9_000, abs=4)]
    assert counted()["Resent"] == 3
    stored = aws.item()
    assert (stored["status"], stored["trouble"]["code"]) == ("sending", "in_doubt")
    assert stored["trouble"]["message"].endswith("its outcome is unknown: ConnectionResetError")
    assert stored["unsettled_tries"][0].startswith(f"{NOW_MS} ")


def test_a_message_of_unknown_outcome_returns_to_the_queue_at_once_if_it_may_not_be_submitted_again(
    make_post: Make, ledger: Ledger, clock: FakeClock
) -> None:
    crash(ledger, clock)
    worker = make_post(resend_delays=())
    assert worker.handle(item()) == {"r-0": 0}
    assert worker.handle(item()) == {"r-0": 0}
    assert worker.submitted == []


def test_a_redriven_message_of_unknown_outcome_is_submitted_exactly_once_more(
    make_post: Make, ledger: Ledger, clock: FakeClock
) -> None:
    crash(ledger, clock)
    worker = make_post(ConnectionResetError("gone"), resend_delays=())
    worker.handle(item())
    ledger.dead_lettered(KEY)
    receive_times(worker, clock)
    assert worker.submitted == ["m-1"]


def test_a_try_that_a_look_up_did_not_find_is_not_looked_up_again(
    make_post: Make, ledger: Ledger, clock: FakeClock, aws: Aws
) -> None:
    crash(ledger, clock)
    make_post(Retry("throttled"), evidence=NotFound()).handle(item())
    worker = make_post()
    assert worker.handle(item()) == {}
    assert (worker.submitted, worker.adapter.looked_up) == (["m-1"], [])


def test_if_on_unknown_is_hold_a_message_fails_with_advice_after_an_inconclusive_look_up(
    make_post: Make, ledger: Ledger, clock: FakeClock, aws: Aws, counted: Counted
) -> None:
    crash(ledger, clock)
    worker = make_post(evidence=Unknowable(), on_unknown="hold")
    assert worker.handle(item()) == {}
    assert worker.submitted == []
    assert (aws.item()["status"], aws.item()["error"]["code"]) == ("failed", "outcome_unknown")
    assert "resend the message if it never arrived" in aws.item()["error"]["message"]
    assert counted() == {"Held": 1}


def test_a_message_whose_delivery_event_is_in_the_ledger_after_a_crash_is_not_submitted_again(
    make_post: Make, ledger: Ledger, clock: FakeClock, aws: Aws
) -> None:
    crash(ledger, clock)
    observe(ledger, [ses_event(KEY, "delivered", provider_id="p-0")])
    worker = make_post()
    assert worker.handle(item()) == {}
    assert (worker.submitted, worker.adapter.looked_up) == ([], [])
    assert (aws.item()["status"], aws.item()["provider_id"]) == ("delivered", "p-0")


def test_a_message_whose_provider_id_is_in_the_ledger_after_a_crash_is_not_submitted_again(
    make_post: Make, ledger: Ledger, clock: FakeClock, aws: Aws
) -> None:
    ledger.checkpoint(claimed(ledger), "fake", "p-0")
    clock.advance(LEASE)
    worker = make_post(on_unknown="hold")
    assert worker.handle(item()) == {}
    assert (worker.submitted, worker.adapter.looked_up) == ([], [])
    assert (aws.item()["status"], aws.item()["provider_id"]) == ("sent", "p-0")


@pytest.mark.parametrize("on_unknown", ["resend", "hold"])
def test_a_failed_look_up_neither_uses_the_days_budget_nor_adds_an_unsettled_try(
    make_post: Make, ledger: Ledger, clock: FakeClock, aws: Aws, counted: Counted, on_unknown: str
) -> None:
    """Run a submit, then an outage of the provider's list: three receives whose look-ups fail."""
    crash(ledger, clock, account="p/1")
    budget = Budget(aws.dynamodb, BUDGETS, "mail", A_HUNDRED_A_DAY, 0.1, clock)
    of_day = {"budgets_table": BUDGETS, "per_day": A_HUNDRED_A_DAY, "reserve": 0.1}
    for number in range(3):
        worker = make_post(evidence=ConnectionError("the list is down"), on_unknown=on_unknown, **of_day)
        worker.adapter.account = "p/1"
        assert worker.handle(item()) == {"r-0": int(LEASE) + 1}
        clock.advance(LEASE)
        assert (worker.submitted, counted()) == ([], {"Retried": number + 1})
        assert sum(budget.spent()) == 0
        assert (len(aws.item()["unsettled_tries"]), "startedAt" in aws.item()) == (1, False)
        assert aws.item()["trouble"] == {"code": "look_up_failed", "message": "ConnectionError"}
    worker = make_post(evidence=Unknowable(), on_unknown=on_unknown)
    worker.adapter.account = "p/1"
    assert worker.handle(item()) == {}
    assert worker.submitted == (["m-1"] if on_unknown == "resend" else [])


@pytest.mark.parametrize("crashed", [False, True])
def test_invalid_credentials_are_reported_as_a_configuration_error_before_and_after_a_crash(
    make_post: Make, ledger: Ledger, clock: FakeClock, aws: Aws, counted: Counted, crashed: bool
) -> None:
    if crashed:
        crash(ledger, clock)
    worker = make_post(evidence=NotFound())
    worker.adapter.refusal = Misconfigured("the secret is empty")
    assert worker.handle(item()) == {"r-0": 20}
    assert (worker.submitted, counted()) == ([], {"Misconfigured": 1})
    assert aws.item()["trouble"] == {"code": "misconfigured", "message": "the secret is empty"}


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (OutcomeUnknown("SES answered 503 ServiceUnavailable"), "SES answered 503 ServiceUnavailable"),
        (TimeoutError("ada@example.com"), "TimeoutError"),
    ],
)
def test_the_error_behind_an_unknown_outcome_is_in_the_ledger_item_and_in_the_dead_letters_cause(
    make_post: Make, aws: Aws, error: Exception, cause: str
) -> None:
    make_post(error).handle(item())
    assert aws.item()["trouble"] == {"code": "no_outcome", "message": cause}
    letter = DeadLetter("mail-dlq", "id", "receipt", "", receives=9, sent_at=1)
    assert cause in cause_of(letter, Subject("message", KEY), aws.item()).message


def test_a_message_whose_acceptance_could_not_be_recorded_is_not_sent_by_the_next_receive(
    aws: Aws, clock: FakeClock, log: Log
) -> None:
    dynamodb = Meddler(aws.dynamodb)
    worker = Post(aws, clock, FakeAdapter(Sent("p-1")), dynamodb=dynamodb)

    def down_after_the_claim(real: Callable[..., Any], **arguments: Any) -> Any:
        if len(dynamodb.calls) > 1:
            raise client_error("InternalServerError", status=500)
        return real(**arguments)

    dynamodb._changes["update_item"] = down_after_the_claim
    assert worker.handle(item()) == {"r-0": int(LEASE) + 1}
    # In an outage each further call could take as long as the first, and the batch lacks the time for it.
    assert dynamodb.names() == ["update_item"] * 2
    assert worker.handle(item()) == {"r-0": 4}
    assert worker.submitted == ["m-1"]
    assert lines_about(log(), "sent, but not recorded")[0]["provider_id"] == "p-1"
    assert lines_about(log(), "sent, but not recorded")[0]["id"] == "m-1"


def test_a_worker_that_lost_its_claim_logs_the_provider_id_and_leaves_the_ledger_unchanged(
    aws: Aws, clock: FakeClock, ledger: Ledger, log: Log
) -> None:
    class Slow(FakeAdapter):
        def submit(self, request: Mail) -> Any:
            clock.advance(LEASE)
            claimed(ledger)  # another worker, after the lease
            return super().submit(request)

    worker = Post(aws, clock, Slow(Sent("p-1")))
    assert list(worker.handle(item())) == ["r-0"]
    assert aws.item()["status"] == "sending"
    assert "accepted as p-1, but another worker has claimed the message since" in json.dumps(log())


@pytest.mark.parametrize(
    ("error", "trouble"),
    [
        (ConnectError("cannot be reached"), {"code": "retry", "message": "cannot be reached"}),
        (NotReady(Misconfigured("no secret")), {"code": "misconfigured", "message": "no secret"}),
    ],
)
def test_an_error_that_proves_that_the_message_was_not_sent_releases_the_claim(
    make_post: Make, aws: Aws, error: NotSent, trouble: dict[str, str]
) -> None:
    """An adapter of one's own may let such an error through."""
    assert make_post(error, on_unknown="hold").handle(item()).keys() == {"r-0"}
    assert aws.item().keys().isdisjoint({"startedAt", "unsettled_tries"})
    assert aws.item()["trouble"] == trouble


def test_the_claim_is_kept_after_any_error_that_follows_the_submit(
    make_post: Make, aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = make_post(ConnectionResetError("gone"))
    monkeypatch.setattr(Attempt, "_answer", lambda *_: 1 / 0)
    assert worker.handle(item()) == {"r-0": int(LEASE) + 1}
    assert (aws.item()["startedAt"], len(aws.item()["unsettled_tries"])) == (NOW_MS, 1)
