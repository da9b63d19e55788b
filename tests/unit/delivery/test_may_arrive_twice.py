"""The ledger's record of messages that may have arrived twice, after an earlier try of unknown outcome."""

from typing import Any

import pytest

from mailroom.ledger.ledger import Ledger
from mailroom.ledger.observer import observe
from mailroom.ledger.status_reader import may_have_arrived_twice
from mailroom.message.outcome import Evidence, NotFound, Rejected, Repeatable, Sent, Unknowable
from tests.support.told import ses_event
from tests.support.unit.post import Make, Post
from tests.support.unit.shared import KEY, NOW, Aws, FakeClock, claimed, crash, item, mail

ACCOUNT, ANOTHER = "this/account", "another/account"


def same_request(message: Any) -> Any:
    """Return the request of the earlier try."""
    return message


def worker_after_a_crash(
    post: Make, ledger: Ledger, clock: FakeClock, *responses: Any, account: str = ACCOUNT, **changes: Any
) -> Post:
    """Make the worker that comes after one which died in its submit at `account`."""
    crash(ledger, clock, account=account)
    worker = post(*responses, **changes)
    worker.adapter.account = ACCOUNT
    return worker


@pytest.mark.parametrize(
    ("evidence", "account", "twice"),
    [
        (Unknowable(), ACCOUNT, True),
        (NotFound(), ACCOUNT, False),
        (NotFound(), ANOTHER, True),
        (Repeatable(NOW + 86_400, same_request), ACCOUNT, False),
        (Sent("p-0"), ACCOUNT, False),
    ],
    ids=["nobody knows", "not found", "not found at another account", "same key", "found"],
)
def test_a_message_may_have_arrived_twice_only_if_the_outcome_of_an_earlier_try_is_unknown(
    make_post: Make,
    ledger: Ledger,
    clock: FakeClock,
    aws: Aws,
    evidence: Evidence,
    account: str,
    *,
    twice: bool,
) -> None:
    worker = worker_after_a_crash(make_post, ledger, clock, account=account, evidence=evidence)
    assert worker.handle(item()) == {}
    assert aws.item()["status"] == "sent"
    assert may_have_arrived_twice(aws.item()) is twice


def test_a_message_tried_at_two_accounts_and_found_at_one_may_have_arrived_twice(
    make_post: Make, ledger: Ledger, clock: FakeClock, aws: Aws
) -> None:
    crash(ledger, clock, account=ANOTHER)
    worker = worker_after_a_crash(make_post, ledger, clock, evidence=Sent("p-0"))
    assert worker.handle(item()) == {}
    assert may_have_arrived_twice(aws.item())


@pytest.mark.parametrize("on_unknown", ["hold", "resend"])
def test_a_message_that_was_not_sent_again_has_not_arrived_twice(
    make_post: Make, ledger: Ledger, clock: FakeClock, aws: Aws, on_unknown: str
) -> None:
    worker = worker_after_a_crash(
        make_post, ledger, clock, Rejected("no"), evidence=Unknowable(), on_unknown=on_unknown
    )
    assert worker.handle(item()) == {}
    assert aws.item()["error"]["code"] == "outcome_unknown"
    assert not may_have_arrived_twice(aws.item())


def test_a_message_with_two_crashed_tries_and_a_delivery_event_may_have_arrived_twice(
    ledger: Ledger, clock: FakeClock, aws: Aws
) -> None:
    for _ in range(2):
        crash(ledger, clock)
    observe(ledger, [ses_event(KEY, "delivered")])
    assert may_have_arrived_twice(aws.item())


def test_a_message_with_one_try_has_not_arrived_twice_even_if_its_event_precedes_its_completion(
    ledger: Ledger, aws: Aws
) -> None:
    claim = claimed(ledger)
    observe(ledger, [ses_event(KEY, "delivered")])
    ledger.complete(claim, "ses", "p-1")
    assert not may_have_arrived_twice(aws.item())


@pytest.mark.parametrize("arrived", [False, True])
def test_a_resent_message_may_have_arrived_twice_only_if_it_had_arrived_before_the_resend(
    ledger: Ledger, aws: Aws, *, arrived: bool
) -> None:
    ledger.complete(claimed(ledger), "ses", "p-1")
    attempt = ledger.reopen(KEY, aws.item(), arrived=arrived)
    assert not may_have_arrived_twice(aws.item())
    assert attempt is not None
    ledger.complete(claimed(ledger, mail(attempt=attempt)), "ses", "p-2")
    assert may_have_arrived_twice(aws.item()) is arrived
