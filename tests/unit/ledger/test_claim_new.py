"""First attempts that are claimed together: what `claim` would have written, or nothing."""

from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from mailroom.channels.mail.contract import Mail
from mailroom.ledger.claims import Claimed, InProgress
from mailroom.ledger.ledger import Ledger, NewClaim
from mailroom.message.outcome import ANY_ACCOUNT
from tests.support.unit.fakes import Meddler, asked_twice
from tests.support.unit.shared import LEASE, LEDGER, TTL, Aws, FakeClock, claimed, mail


def wanted(ledger: Ledger, *messages: Mail) -> list[NewClaim]:
    return [NewClaim(each, ANY_ACCOUNT, None, ledger.new_token()) for each in messages]


def meddled(aws: Aws, clock: FakeClock, client: Meddler) -> Ledger:
    return Ledger(client, LEDGER, lease=LEASE, ttl=TTL, clock=clock)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("account", "redirected_to", "about"),
    [
        (ANY_ACCOUNT, None, {"callback_url": "https://shop.example/told", "topic": "offers"}),
        ("twilio/AC1", None, {"to": ["a@example.com", "b@example.com"]}),
        ("twilio/AC1 for qa@example.com", "qa@example.com", {}),
    ],
)
def test_the_item_is_the_one_that_a_claim_would_have_made(
    ledger: Ledger, aws: Aws, account: str | None, redirected_to: str | None, about: dict[str, Any]
) -> None:
    one, other = mail(**about), mail("m-2", **about)
    alone = ledger.claim(one, account, redirected_to, "t")
    (together,) = ledger.claim_new([NewClaim(other, account, redirected_to, "t")])
    assert {**aws.item("m-2"), "id": "m-1"} == aws.item("m-1")
    assert isinstance(alone, Claimed)
    assert isinstance(together, Claimed)
    assert together == Claimed(other.key, *[getattr(alone, name) for name in Claimed.__struct_fields__[1:]])


def test_what_has_an_item_is_left_as_it_is_and_its_neighbours_are_claimed(ledger: Ledger, aws: Aws) -> None:
    claimed(ledger)
    before = aws.item()
    made = ledger.claim_new(wanted(ledger, mail("m-0"), mail(), mail("m-2")))
    assert [isinstance(claim, Claimed) for claim in made] == [True, False, True]
    assert made[1] == "DuplicateItem"
    assert aws.item() == before
    assert aws.item("m-2")["status"] == "sending"


def test_a_claim_whose_answer_was_lost_is_known_by_its_token(aws: Aws, clock: FakeClock) -> None:
    ledger = meddled(aws, clock, Meddler(aws.dynamodb, batch_execute_statement=asked_twice))
    ours, others = wanted(ledger, mail(), mail("m-2"))
    assert ledger.claim_new([ours, others]) == ["DuplicateItem"] * 2
    clock.advance(1)
    claim = ledger.claim(*ours)
    assert isinstance(claim, Claimed)
    assert (claim.token, claim.unsettled) == (ours.token, ())
    assert isinstance(ledger.claim(others.message), InProgress)


def test_one_call_claims_up_to_twenty_five(aws: Aws, clock: FakeClock) -> None:
    client = Meddler(aws.dynamodb)
    ledger = meddled(aws, clock, client)
    made = ledger.claim_new(wanted(ledger, *(mail(f"m-{at}") for at in range(26))))
    assert all(isinstance(claim, Claimed) for claim in made)
    assert [len(asked["Statements"]) for _, asked in client.calls] == [25, 1]


def test_a_statement_that_dynamodb_was_too_busy_for_is_no_claim(aws: Aws, clock: FakeClock) -> None:
    busy = {"Responses": [{"Error": {"Code": "ThrottlingError", "Message": "slow down"}}, {}]}
    client = Meddler(aws.dynamodb, batch_execute_statement=lambda _real, **_asked: busy)
    ledger = meddled(aws, clock, client)
    first, second = ledger.claim_new(wanted(ledger, mail(), mail("m-2")))
    assert (first, isinstance(second, Claimed)) == ("ThrottlingError", True)


def test_a_call_that_fails_raises_and_a_claim_by_the_same_token_still_succeeds(
    aws: Aws, clock: FakeClock
) -> None:
    def unheard(real: object, **asked: object) -> None:
        assert callable(real)
        real(**asked)
        raise ReadTimeoutError(endpoint_url="https://dynamodb.example")

    ledger = meddled(aws, clock, Meddler(aws.dynamodb, batch_execute_statement=unheard))
    both = wanted(ledger, mail(), mail("m-2"))
    with pytest.raises(ReadTimeoutError):
        ledger.claim_new(both)
    assert all(isinstance(ledger.claim(*each), Claimed) for each in both)
