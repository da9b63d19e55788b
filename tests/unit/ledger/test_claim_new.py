"""First attempts that are claimed together get the same item as by `claim`, or no item."""

from typing import Any

import pytest

from mailroom.channels.mail.contract import Mail
from mailroom.ledger.claims import Claimed, InProgress
from mailroom.ledger.ledger import Ledger, NewClaim
from mailroom.message.outcome import ANY_ACCOUNT
from tests.support.unit.fakes import Meddler, asked_twice
from tests.support.unit.shared import LEASE, LEDGER, TTL, Aws, FakeClock, mail


def claims_of(ledger: Ledger, *messages: Mail) -> list[NewClaim]:
    return [NewClaim(message, ANY_ACCOUNT, None, ledger.new_token()) for message in messages]


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
def test_a_message_claimed_in_a_batch_gets_the_same_ledger_item_as_a_message_claimed_separately(
    ledger: Ledger, aws: Aws, account: str | None, redirected_to: str | None, about: dict[str, Any]
) -> None:
    first, second = mail(**about), mail("m-2", **about)
    alone = ledger.claim(first, account, redirected_to, "t")
    (together,) = ledger.claim_new([NewClaim(second, account, redirected_to, "t")])
    assert {**aws.item("m-2"), "id": "m-1"} == aws.item("m-1")
    assert isinstance(alone, Claimed)
    assert isinstance(together, Claimed)
    assert together == Claimed(second.key, *[getattr(alone, name) for name in Claimed.__struct_fields__[1:]])


def test_a_claim_repeated_with_the_same_token_after_a_lost_response_succeeds(
    aws: Aws, clock: FakeClock
) -> None:
    ledger = meddled(aws, clock, Meddler(aws.dynamodb, batch_execute_statement=asked_twice))
    first, second = claims_of(ledger, mail(), mail("m-2"))
    assert ledger.claim_new([first, second]) == ["DuplicateItem"] * 2
    clock.advance(1)
    claim = ledger.claim(*first)
    assert isinstance(claim, Claimed)
    assert (claim.token, claim.unsettled) == (first.token, ())
    assert isinstance(ledger.claim(second.message), InProgress)


def test_one_call_claims_up_to_twenty_five_messages(aws: Aws, clock: FakeClock) -> None:
    client = Meddler(aws.dynamodb)
    ledger = meddled(aws, clock, client)
    claims = ledger.claim_new(claims_of(ledger, *(mail(f"m-{at}") for at in range(26))))
    assert all(isinstance(claim, Claimed) for claim in claims)
    assert [len(request["Statements"]) for _, request in client.calls] == [25, 1]


def test_a_message_whose_insert_was_throttled_is_not_claimed(aws: Aws, clock: FakeClock) -> None:
    busy = {"Responses": [{"Error": {"Code": "ThrottlingError", "Message": "slow down"}}, {}]}
    client = Meddler(aws.dynamodb, batch_execute_statement=lambda _real, **_request: busy)
    ledger = meddled(aws, clock, client)
    first, second = ledger.claim_new(claims_of(ledger, mail(), mail("m-2")))
    assert (first, isinstance(second, Claimed)) == ("ThrottlingError", True)
