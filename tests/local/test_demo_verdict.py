"""The demo tells right from wrong: each kind of failure is seen and named."""

from typing import Any

from local.demo.checks.verdict import Key, Verdict, judge
from local.demo.scenarios import mails as cast
from local.demo.scenarios.mails import Message

GOOD = Message({"id": "a", "event_type": "mail", "email": "a@example.com"})
BAD = Message({"id": "b", "event_type": "mail"}, reason="to")
DELIVERED: dict[str, Any] = {"status": "delivered", "completedAt": 1}
FAILED: dict[str, Any] = {
    "status": "failed",
    "completedAt": 1,
    "error": {"code": "invalid", "message": "to: is missing"},
}
BOUNCED = Message(
    {"id": "c", "event_type": "mail", "to": ["c@example.com", "d@example.com"]},
    ends="bounced",
    recipients={"c@example.com": "bounced", "d@example.com": "delivered"},
)
LEDGER: dict[Key, dict[str, Any]] = {GOOD.key: DELIVERED, BAD.key: FAILED}
MAIL = {"to": "a@example.com"}


def verdict(inbox: list[dict[str, str]], ledger: dict[Key, dict[str, Any]]) -> Verdict:
    return judge([GOOD, BAD], inbox, ledger, duplicates=3, seconds=0.5)


def test_all_as_it_should_be() -> None:
    result = verdict([MAIL], LEDGER)
    assert (result.messages, result.accepted, result.rejected, result.lost) == (2, 1, 1, 0)
    assert (result.duplicates, result.sent_twice, result.rate, result.failures) == (3, 0, 4.0, [])
    assert result.reasons == [{"id": "b", "code": "invalid", "message": "to: is missing"}]


def test_a_mail_that_never_came_is_lost_whatever_the_ledger_says() -> None:
    result = verdict([], LEDGER)
    assert result.lost == 1
    assert "a is lost" in result.failures[0]


def test_a_message_without_a_ledger_item_is_lost() -> None:
    assert verdict([MAIL], {GOOD.key: DELIVERED}).lost == 1


def test_a_mail_sent_twice_is_seen() -> None:
    result = verdict([MAIL, MAIL], LEDGER)
    assert result.sent_twice == 1
    assert "a@example.com got 2 mails" in result.failures[0]


def test_a_bad_message_that_was_sent_is_seen() -> None:
    assert "b should be failed" in verdict([MAIL], LEDGER | {BAD.key: DELIVERED}).failures[0]


def test_a_reason_that_names_another_field_is_seen() -> None:
    other = FAILED | {"error": {"message": "subject is missing"}}
    assert "does not name 'to'" in verdict([MAIL], LEDGER | {BAD.key: other}).failures[0]


def test_a_mail_that_nobody_asked_for_is_seen() -> None:
    assert "eve@example.com" in verdict([MAIL, {"to": "eve@example.com"}], LEDGER).failures[0]


def test_a_mail_that_ends_otherwise_than_it_must_is_seen() -> None:
    sent = DELIVERED | {"status": "sent"}
    assert "a should be delivered" in verdict([MAIL], LEDGER | {GOOD.key: sent}).failures[0]


def test_a_mail_to_several_is_one_mail_with_an_outcome_for_each() -> None:
    inbox = [{"to": "c@example.com, d@example.com"}]
    outcomes = {
        "c@example.com": {"status": "bounced", "bouncedAt": 1},
        "d@example.com": {"status": "delivered"},
    }
    row = {"status": "bounced", "completedAt": 1, "recipients": outcomes}
    assert judge([BOUNCED], inbox, {BOUNCED.key: row}, 0, 1).failures == []
    swapped = row | {"recipients": outcomes | {"d@example.com": {}}}
    (failure,) = judge([BOUNCED], inbox, {BOUNCED.key: swapped}, 0, 1).failures
    assert "c: its recipients should be" in failure


def test_the_recipients_are_500_with_ids_and_addresses_of_their_own() -> None:
    messages = cast.good()
    assert len(messages) == len({message.key for message in messages}) == 500
    assert len({message.address for message in messages}) == 500
    assert all(message.address.endswith(("@example.com", "@example.org")) for message in messages)
