"""The demo tells right from wrong about SMS and pushes: each kind of failure is seen and named."""

import base64
from typing import Any

from local.demo.checks.messages import UNKNOWN, MessageCheck, by_message, check_messages
from local.demo.scenarios import Scenario

GOOD = Scenario({"id": "a", "event_type": "sms", "to": "+1"}, facts={"segments": 2, "encoding": "UCS-2"})
BAD = Scenario({"id": "b", "event_type": "sms", "to": "+2"}, reason="21211")
LATER = Scenario({"id": "c", "event_type": "sms", "to": "+3"}, reason="bounced", ends="suppressed")
ACCEPTED: dict[str, list[dict[str, Any]]] = {"a": [{"provider_id": "SM1"}]}
DONE = {"completedAt": 1}
DELIVERED = {"status": "delivered", "provider_id": "SM1", "segments": 2, "encoding": "UCS-2"} | DONE
FAILED = {"status": "failed", "error": {"code": "rejected", "message": "Twilio: 21211"}} | DONE
SUPPRESSED = {"status": "suppressed", "error": {"message": "it bounced"}} | DONE
LEDGER: dict[tuple[str, str], dict[str, Any]] = {
    GOOD.key: DELIVERED,
    BAD.key: FAILED,
    LATER.key: SUPPRESSED,
}


def check(
    accepted: dict[str, list[dict[str, Any]]] = ACCEPTED, **changes: dict[str, Any] | None
) -> MessageCheck:
    """Of the ledger with changes to the items of these ids; None: there is none."""
    ledger = {key: row | (changes.get(key[0]) or {}) for key, row in LEDGER.items()}
    for id_ in [id_ for id_, change in changes.items() if change is None]:
        del ledger[id_, "sms"]
    return check_messages([GOOD, BAD, LATER], accepted, ledger)


def test_all_as_it_should_be() -> None:
    result = check()
    assert (result.messages, result.accepted, result.rejected, result.suppressed) == (3, 1, 1, 1)
    assert (result.sent_twice, result.lost, result.segments, result.failures) == (0, 0, 2, [])
    assert result.reasons == [{"id": "b", "code": "rejected", "message": "Twilio: 21211"}]


def test_a_message_without_an_item_is_lost() -> None:
    result = check(a=None)
    assert result.lost == 1
    assert result.failures == ["a is lost: not in the ledger."]


def test_a_message_that_has_not_ended_is_lost() -> None:
    rows = {key: row for key, row in LEDGER.items() if key != GOOD.key} | {GOOD.key: {"status": "sending"}}
    result = check_messages([GOOD], ACCEPTED, rows)
    assert (result.lost, result.failures[0]) == (1, "a is lost: sending, no error.")


def test_another_final_status_is_seen() -> None:
    assert check(a={"status": "sent"}).failures == ["a should be delivered; the ledger says sent, no error."]
    assert "c should be suppressed" in check(c={"status": "failed"}).failures[0]


def test_a_reason_that_names_something_else_is_seen() -> None:
    assert "does not name '21211'" in check(b={"error": {"message": "busy"}}).failures[0]


def test_a_fact_that_is_another_is_seen() -> None:
    assert check(a={"segments": 3}).failures == ["a: segments should be 2; the ledger says 3."]


def test_a_message_that_was_sent_twice_or_never_is_seen() -> None:
    result = check({"a": [{"provider_id": "SM1"}, {"provider_id": "SM2"}]})
    assert (result.sent_twice, result.failures) == (1, ["a was accepted 2 times instead of 1."])
    assert check({}).failures == [
        "a is lost: delivered, no error.",
        "a was accepted 0 times instead of 1.",
    ]


def test_a_message_that_should_not_have_been_sent_and_was_is_seen() -> None:
    result = check(ACCEPTED | {"c": [{"provider_id": None}]})
    assert result.failures == ["c was accepted 1 times instead of 0."]


def test_an_id_that_the_provider_does_not_know_is_seen() -> None:
    assert "does not know 'SM9'" in check(a={"provider_id": "SM9"}).failures[0]


def test_what_was_accepted_is_told_apart_by_what_it_carries() -> None:
    def sms(path: str) -> dict[str, Any]:
        return {"channel": "sms", "content": {"callback": f"https://api.example/callbacks/twilio/{path}"}}

    def push(data: dict[str, Any]) -> dict[str, Any]:
        return {"channel": "push", "content": {"payloads": {"APNS": {"aps": {}, **data}}}}

    coded = base64.urlsafe_b64encode(b"sms-\xc3\xa9").rstrip(b"=").decode()
    one, again, push_one = sms(coded), sms(f"{coded}.2"), push({"demo_id": "push-1"})
    nobody, silent = sms("!"), push({})
    mail = {"channel": "mail", "content": {"headers": {"X-Correlation-ID": "bQ"}}}
    fax = {"channel": "fax", "content": {}}
    assert by_message([one, again, push_one, nobody, silent, mail, fax]) == {
        "m": [mail],
        "sms-é": [one, again],
        "push-1": [push_one],
        UNKNOWN: [nobody, silent],
    }
