"""The demo tells right from wrong about mails: each kind of failure is seen and named."""

import base64
from typing import Any

from local.demo.checks.messages import MessageCheck, by_message, check_messages, unexpected
from local.demo.client import Key
from local.demo.scenarios import Scenario, mails

GOOD = Scenario({"id": "a", "event_type": "mail", "email": "a@example.com"})
BAD = Scenario({"id": "b", "event_type": "mail"}, reason="to")
DELIVERED: dict[str, Any] = {"status": "delivered", "completedAt": 1, "provider_id": "m-a"}
FAILED: dict[str, Any] = {
    "status": "failed",
    "completedAt": 1,
    "error": {"code": "invalid", "message": "to: is missing"},
}
BOUNCED = Scenario(
    {"id": "c", "event_type": "mail", "to": ["c@example.com", "d@example.com"]},
    ends="bounced",
    recipients={"c@example.com": "bounced", "d@example.com": "delivered"},
)
LEDGER: dict[Key, dict[str, Any]] = {GOOD.key: DELIVERED, BAD.key: FAILED}


def mail(id_: str, to: str) -> dict[str, Any]:
    """An entry of the inbox."""
    reference = base64.urlsafe_b64encode(id_.encode()).decode().rstrip("=")
    content = {"headers": {"X-Correlation-ID": reference}}
    return {"channel": "mail", "to": to, "provider_id": f"m-{id_}", "content": content}


MAIL = mail("a", "a@example.com")


def check(inbox: list[dict[str, Any]], ledger: dict[Key, dict[str, Any]]) -> MessageCheck:
    return check_messages([GOOD, BAD], by_message(inbox), ledger)


def test_all_as_it_should_be() -> None:
    result = check([MAIL], LEDGER)
    assert (result.messages, result.accepted, result.rejected, result.lost) == (2, 1, 1, 0)
    assert (result.sent_twice, result.failures) == (0, [])
    assert result.reasons == [{"id": "b", "code": "invalid", "message": "to: is missing"}]


def test_a_mail_that_never_came_is_lost_whatever_the_ledger_says() -> None:
    result = check([], LEDGER)
    assert result.lost == 1
    assert "a is lost" in result.failures[0]


def test_a_message_without_a_ledger_item_is_lost() -> None:
    assert check([MAIL], {GOOD.key: DELIVERED}).lost == 1


def test_a_mail_sent_twice_is_seen() -> None:
    result = check([MAIL, MAIL], LEDGER)
    assert result.sent_twice == 1
    assert "a was accepted 2 times" in result.failures[0]


def test_a_mail_to_another_address_is_seen() -> None:
    assert check([mail("a", "eve@example.com")], LEDGER).failures == [
        "a went to eve@example.com instead of a@example.com."
    ]


def test_a_bad_message_that_was_sent_is_seen() -> None:
    assert "b should be failed" in check([MAIL], LEDGER | {BAD.key: DELIVERED}).failures[0]


def test_a_reason_that_names_another_field_is_seen() -> None:
    other = FAILED | {"error": {"message": "subject is missing"}}
    assert "does not name 'to'" in check([MAIL], LEDGER | {BAD.key: other}).failures[0]


def test_a_mail_that_nobody_asked_for_is_seen() -> None:
    accepted = by_message([MAIL, mail("eve", "eve@example.com")])
    assert unexpected(accepted, {"a", "b"}) == ["A provider got eve, which was not sent."]


def test_a_mail_that_ends_otherwise_than_it_must_is_seen() -> None:
    sent = DELIVERED | {"status": "sent"}
    assert "a should be delivered" in check([MAIL], LEDGER | {GOOD.key: sent}).failures[0]


def test_a_mail_to_several_is_one_mail_with_an_outcome_for_each() -> None:
    accepted = by_message([mail("c", "c@example.com, d@example.com")])
    outcomes = {
        "c@example.com": {"status": "bounced", "bouncedAt": 1},
        "d@example.com": {"status": "delivered"},
    }
    row = {"status": "bounced", "completedAt": 1, "provider_id": "m-c", "recipients": outcomes}
    assert check_messages([BOUNCED], accepted, {BOUNCED.key: row}).failures == []
    swapped = row | {"recipients": outcomes | {"d@example.com": {}}}
    (failure,) = check_messages([BOUNCED], accepted, {BOUNCED.key: swapped}).failures
    assert "c: its recipients should be" in failure


def test_the_recipients_are_500_with_ids_and_addresses_of_their_own() -> None:
    messages = mails.good()
    assert len(messages) == len({message.key for message in messages}) == 500
    assert len({message.address for message in messages}) == 500
    assert all(message.address.endswith(("@example.com", "@example.org")) for message in messages)
