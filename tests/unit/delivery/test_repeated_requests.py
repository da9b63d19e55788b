"""A provider that recognizes a request by its key: after a crash the identical request is repeated for as
long as the provider knows the key."""

from collections.abc import Callable
from typing import Any

import pytest

from mailroom.channels.mail.contract import Mail
from mailroom.clock import iso
from mailroom.ledger.ledger import Ledger
from mailroom.message.outcome import Conflict, Repeatable, Retry, Sent
from mailroom.recipients.choices import Suppression, Suppressions
from tests.support.unit.post import Counted, Make, Post
from tests.support.unit.shared import LEASE, NOW, NOW_MS, SUPPRESSIONS, Aws, FakeClock, crash, item

ACCOUNT = "keyed/1"
Again = Callable[..., Post]


def first_request(message: Mail) -> Any:
    """Return the request of the first try, which differs from a new one."""
    return type("Request", (), {"id": f"{message.id} again"})()


@pytest.fixture
def after_a_crash(make_post: Make, ledger: Ledger, clock: FakeClock) -> Again:
    """Make the worker after one that died; the provider knows the key for a day."""

    def make(*says: Any, account: str = ACCOUNT, until: float = NOW + 86_400, **changes: Any) -> Post:
        crash(ledger, clock, account=account)
        worker = make_post(*says, evidence=Repeatable(until, first_request), **changes)
        worker.adapter.account = ACCOUNT
        return worker

    return make


@pytest.mark.parametrize("on_unknown", ["hold", "resend"])
def test_after_a_workers_crash_the_identical_request_is_repeated_for_each_value_of_on_unknown(
    after_a_crash: Again, aws: Aws, counted: Counted, on_unknown: str
) -> None:
    worker = after_a_crash(on_unknown=on_unknown)
    assert worker.handle(item()) == {}
    assert worker.submitted == ["m-1 again"]
    assert (aws.item()["status"], aws.item()["provider_id"]) == ("sent", "p-1")
    assert counted() == {"Repeated": 1, "Sent": 1}


def test_the_number_of_resend_delays_does_not_limit_the_repeats_of_an_identical_request(
    after_a_crash: Again, clock: FakeClock
) -> None:
    worker = after_a_crash(ConnectionResetError("gone"), on_unknown="resend", resend_delays=())
    for _ in range(5):
        assert worker.handle(item()) == {"r-0": int(LEASE) + 1}
        clock.advance(LEASE)
    assert worker.submitted == ["m-1 again"] * 5


def test_an_identical_request_whose_repeat_was_throttled_can_be_repeated_again(
    after_a_crash: Again, aws: Aws
) -> None:
    worker = after_a_crash(Retry("throttled"), Sent("p-1"), on_unknown="hold")
    assert worker.handle(item()).keys() == {"r-0"}
    assert aws.item()["unsettled_tries"][0].startswith(f"{NOW_MS} ")
    assert worker.handle(item()) == {}
    assert worker.submitted == ["m-1 again"] * 2


def reason_of_hold(worker: Post, aws: Aws, **changes: str) -> str:
    """Return the reason why a message is held. This worker has not submitted it."""
    assert worker.handle(item(**changes)) == {}
    assert worker.submitted == []
    assert (aws.item()["status"], aws.item()["error"]["code"]) == ("failed", "outcome_unknown")
    return str(aws.item()["error"]["message"])


@pytest.mark.parametrize("changes", [{"until": NOW + LEASE}, {"account": "keyed/2"}])
def test_a_message_is_held_if_its_idempotency_key_has_expired_or_belongs_to_another_account(
    after_a_crash: Again, aws: Aws, changes: dict[str, Any]
) -> None:
    assert "on_unknown: hold" in reason_of_hold(after_a_crash(**changes, on_unknown="hold"), aws)


def test_a_message_that_expired_after_a_try_of_unknown_outcome_is_held(
    after_a_crash: Again, aws: Aws
) -> None:
    assert "expires_at" in reason_of_hold(after_a_crash(), aws, expires_at=iso(NOW))


def test_a_message_whose_recipient_was_suppressed_after_a_try_of_unknown_outcome_is_held(
    after_a_crash: Again, aws: Aws, clock: FakeClock
) -> None:
    choices = Suppressions(aws.dynamodb, SUPPRESSIONS, clock)
    choices.mark(Suppression("vincent@example.com", "mail", "complaint", NOW_MS, "complaint"))
    assert "the recipient complained" in reason_of_hold(after_a_crash(suppressions=choices), aws)


@pytest.mark.parametrize(("crashed", "provider"), [(True, "keyed"), (False, "fake")])
def test_a_message_whose_idempotency_key_belongs_to_another_request_is_held_and_submitted_once(
    after_a_crash: Again, make_post: Make, aws: Aws, counted: Counted, *, crashed: bool, provider: str
) -> None:
    refusal = Conflict("the key stands for another request")
    worker = after_a_crash(refusal) if crashed else make_post(refusal)
    assert worker.handle(item()) == {}
    assert worker.handle(item(), receives=2) == {}
    assert len(worker.submitted) == 1
    assert aws.item()["error"] == {
        "code": "outcome_unknown",
        "message": "the key stands for another request; "
        f"ask {provider}, and resend the message if it never arrived",
    }
    assert counted()["Held"] == 1
