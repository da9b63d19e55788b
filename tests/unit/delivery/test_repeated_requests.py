"""A provider that knows a request by its key: after a crash the identical one goes again, for as long as the
key is known."""

from collections.abc import Callable
from typing import Any

import pytest

from mailroom.channels.mail.contract import Mail
from mailroom.clock import iso
from mailroom.ledger.ledger import Ledger
from mailroom.message.outcome import Conflict, Repeatable, Retry, Sent
from mailroom.recipients.choices import Suppression, Suppressions
from tests.support.unit.post import Counted, Make, Post
from tests.support.unit.shared import LEASE, NOW, NOW_MS, SUPPRESSIONS, Aws, FakeClock, claimed, item

ACCOUNT = "keyed/1"
Again = Callable[..., Post]


def again(message: Mail) -> Any:
    """The request of the first try, to be known from a new one."""
    return type("Request", (), {"id": f"{message.id} again"})()


@pytest.fixture
def after_a_crash(post: Make, ledger: Ledger, clock: FakeClock) -> Again:
    """The worker that comes after one that died; the key is known for a day."""

    def make(*says: Any, account: str = ACCOUNT, until: float = NOW + 86_400, **changes: Any) -> Post:
        claimed(ledger, account=account)
        clock.advance(LEASE)
        worker = post(*says, evidence=Repeatable(until, again), **changes)
        worker.adapter.tells = ACCOUNT
        return worker

    return make


@pytest.mark.parametrize("on_unknown", ["hold", "resend"])
def test_the_identical_request_goes_again(
    after_a_crash: Again, aws: Aws, counted: Counted, on_unknown: str
) -> None:
    worker = after_a_crash(on_unknown=on_unknown)
    assert worker.handle(item()) == {}
    assert worker.submitted == ["m-1 again"]
    assert (aws.item()["status"], aws.item()["provider_id"]) == ("sent", "p-1")
    assert counted() == {"Repeated": 1, "Sent": 1}


def test_it_goes_again_without_the_waits_of_what_might_be_sent_twice(
    after_a_crash: Again, clock: FakeClock
) -> None:
    worker = after_a_crash(ConnectionResetError("gone"), on_unknown="resend", resend_delays=())
    for _ in range(5):
        assert worker.handle(item()) == {"r-0": int(LEASE) + 1}
        clock.advance(LEASE)
    assert worker.submitted == ["m-1 again"] * 5


def test_a_refusal_of_the_repeat_leaves_the_first_try_to_be_repeated(after_a_crash: Again, aws: Aws) -> None:
    worker = after_a_crash(Retry("throttled"), Sent("p-1"), on_unknown="hold")
    assert worker.handle(item()).keys() == {"r-0"}
    assert aws.item()["unsettled_tries"][0].startswith(f"{NOW_MS} ")
    assert worker.handle(item()) == {}
    assert worker.submitted == ["m-1 again"] * 2


def held(worker: Post, aws: Aws, **changes: str) -> str:
    """Why a message is held, of which nothing was submitted by this worker."""
    assert worker.handle(item(**changes)) == {}
    assert worker.submitted == []
    assert (aws.item()["status"], aws.item()["error"]["code"]) == ("failed", "outcome_unknown")
    return str(aws.item()["error"]["message"])


def test_once_its_key_is_forgotten_its_outcome_is_unknown(
    after_a_crash: Again, aws: Aws, clock: FakeClock
) -> None:
    assert "on_unknown: hold" in held(after_a_crash(until=NOW + LEASE, on_unknown="hold"), aws)


def test_a_try_at_another_account_is_not_repeated_here(after_a_crash: Again, aws: Aws) -> None:
    assert "on_unknown: hold" in held(after_a_crash(account="keyed/2", on_unknown="hold"), aws)


def test_a_message_that_has_expired_since_is_held(after_a_crash: Again, aws: Aws) -> None:
    assert "expires_at" in held(after_a_crash(), aws, expires_at=iso(NOW))


def test_a_message_whose_recipient_wants_nothing_since_is_held(
    after_a_crash: Again, aws: Aws, clock: FakeClock
) -> None:
    choices = Suppressions(aws.dynamodb, SUPPRESSIONS, clock)
    choices.mark(Suppression("vincent@example.com", "mail", "complaint", NOW_MS, "complaint"))
    assert "its owner complained" in held(after_a_crash(suppressions=choices), aws)


@pytest.mark.parametrize("crashed", [True, False])
def test_another_request_under_its_key_is_never_answered_by_a_new_key(
    after_a_crash: Again, post: Make, aws: Aws, counted: Counted, *, crashed: bool
) -> None:
    refusal = Conflict("the key stands for another request")
    worker = after_a_crash(refusal) if crashed else post(refusal)
    assert worker.handle(item()) == {}
    assert worker.handle(item(), receives=2) == {}
    assert len(worker.submitted) == 1
    assert aws.item()["error"] == {
        "code": "outcome_unknown",
        "message": "the key stands for another request; "
        "ask the provider, and resend it by hand if it never arrived",
    }
    assert counted()["Held"] == 1
