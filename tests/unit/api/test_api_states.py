"""The state of a message, by the API, and its cancellation."""

from typing import Any

import pytest

from mailroom.clock import iso
from mailroom.ledger.ledger import Ledger
from mailroom.ledger.table import LedgerTable
from mailroom.ledger.waits import DAY_USED_UP, SHARDS
from tests.support.unit.api_requests import Api
from tests.support.unit.shared import KEY, LEDGER, MAILBOX, NOW, NOW_MS, Aws, FakeClock, claimed, item, mail
from tests.support.unit.waiting import hold, waits_of

LATER = iso(NOW + 3600)


def test_a_message_without_a_ledger_item_has_the_status_ready(api: Api, aws: Aws) -> None:
    aws.put(MAILBOX, **item(send_at="2026-11-21T11:00:00+01:00"))
    assert api.get("/messages/m-1").json == {
        "id": "m-1",
        "event_type": "mail",
        "status": "ready",
        "attempts": 0,
        "to": "vincent@example.com",
        "scheduled_for": "2026-11-21T10:00:00.000Z",
    }


def test_a_message_whose_ledger_item_may_have_expired_has_the_status_forgotten_and_is_not_cancelled(
    api: Api, aws: Aws
) -> None:
    aws.put(MAILBOX, **item(send_at=iso(NOW - 91 * 86_400)))
    assert api.get("/messages/m-1").json["status"] == "forgotten"
    answer = api.cancel("/messages/m-1/cancel")
    assert (answer.status, answer.json["message_status"]) == (409, "forgotten")


def test_the_state_of_a_message_contains_the_ledgers_fields_with_readable_times(
    api: Api, aws: Aws, ledger: Ledger, clock: FakeClock
) -> None:
    aws.put(MAILBOX, **item())
    claim = claimed(ledger, mail(callback_url="https://h.example/1"))
    clock.advance(1.5)
    ledger.complete(claim, "ses", "0101", {"sentAt": NOW_MS + 1234})
    ledger.note_callback(KEY, "sent.1", {"status": {"S": "delivered"}, "at": {"N": str(NOW_MS + 2001)}})
    said = api.get("/messages/m-1?event_type=mail").json
    assert said == {
        "id": "m-1",
        "event_type": "mail",
        "status": "sent",
        "attempts": 1,
        "to": "vincent@example.com",
        "provider": "ses",
        "provider_id": "0101",
        "subject": "Hello",
        "updated_at": "2026-11-21T09:00:01.500Z",
        "times": {
            "putAt": "2026-11-21T09:00:00.000Z",
            "startedAt": "2026-11-21T09:00:00.000Z",
            "completedAt": "2026-11-21T09:00:01.500Z",
            "sentAt": "2026-11-21T09:00:01.234Z",
        },
        "history": [{"at": "2026-11-21T09:00:01.500Z", "status": "sent"}],
        "callbacks": {"sent.1": {"status": "delivered", "at": "2026-11-21T09:00:02.001Z"}},
    }


def test_the_state_of_a_failed_message_contains_its_reason(api: Api, ledger: Ledger) -> None:
    ledger.fail(claimed(ledger), "invalid", "to: is no address")
    said = api.get("/messages/m-1").json
    assert (said["status"], said["error"]) == ("failed", {"code": "invalid", "message": "to: is no address"})
    assert said["history"][0]["code"] == "invalid"


def test_the_state_of_a_message_contains_each_of_several_recipients(
    api: Api, aws: Aws, ledger: Ledger
) -> None:
    claimed(ledger, mail(to=["a@x.example", "b@x.example"]))
    assert api.get("/messages/m-1").json["recipients"] == {"a@x.example": {}, "b@x.example": {}}


def test_the_state_of_a_message_does_not_contain_its_content(api: Api, aws: Aws, ledger: Ledger) -> None:
    aws.put(MAILBOX, **item(text="very secret", code="4711"))
    assert "secret" not in api.get("/messages/m-1").text
    ledger.complete(claimed(ledger), "ses", "1")
    assert "4711" not in api.get("/messages/m-1").text


def test_an_unknown_message_is_not_found(api: Api) -> None:
    for url in ("/messages/none", "/messages/none?event_type=sms", "/messages?id=none"):
        assert api.get(url).status == 404
    assert api.cancel("/messages/none/cancel").status == 404


def test_several_messages_with_one_id_are_distinguished_by_their_channel(api: Api, aws: Aws) -> None:
    aws.put(MAILBOX, **item())
    aws.put(LEDGER, id="m-1", event_type="sms", status="sent")
    aws.put(MAILBOX, id="m-1", event_type="sms")
    for answer in (api.get("/messages/m-1"), api.cancel("/messages/m-1/cancel")):
        assert (answer.status, answer.fields) == (409, ["event_type"])
        assert answer.json["event_types"] == ["mail", "sms"]
    assert api.get("/messages/m-1?event_type=sms").json["status"] == "sent"
    assert api.get("/messages/m-1?event_type=mail").json["status"] == "ready"


@pytest.mark.parametrize(
    ("url", "field"),
    [
        ("/messages/" + "x" * 181, "id"),
        ("/messages/" + "%C3%BC" * 91, "id"),
        ("/messages/" + "x" * 3000, "id"),
        ("/messages/a%0Ab", "id"),
        ("/messages?id=", "id"),
        ("/messages/m-1?event_type=", "event_type"),
        ("/messages/m-1?event_type=pigeon", "event_type"),
    ],
)
def test_a_request_with_an_invalid_id_or_channel_is_refused_and_the_error_names_the_field(
    api: Api, url: str, field: str
) -> None:
    answer = api.get(url)
    assert (answer.status, answer.fields) == (422, [field])


def test_a_message_can_be_cancelled_before_its_send_at_and_stays_cancelled(
    api: Api, aws: Aws, ledger: Ledger
) -> None:
    api.post(item(send_at=LATER, callback_url="https://h.example/1"))
    first = api.cancel("/messages/m-1/cancel")
    assert (first.status, first.json["status"], first.json["to"]) == (200, "cancelled", "vincent@example.com")
    assert api.cancel("/messages/m-1/cancel?event_type=mail").json == first.json
    assert aws.item()["callback_url"] == "https://h.example/1"
    assert type(ledger.claim(mail())).__name__ != "Claimed"


def test_a_scheduled_message_can_be_cancelled(api: Api, aws: Aws, ledger: Ledger) -> None:
    aws.put(MAILBOX, **item(send_at=LATER))
    hold(ledger)
    assert api.get("/messages/m-1").json["status"] == "scheduled"
    assert api.cancel("/messages/m-1/cancel").json["status"] == "cancelled"


def test_a_scheduled_message_can_be_cancelled_even_if_its_mailbox_item_was_deleted(
    api: Api, ledger: Ledger
) -> None:
    hold(ledger)
    assert api.cancel("/messages/m-1/cancel").json["status"] == "cancelled"


@pytest.mark.parametrize("deleted", [True, False])
@pytest.mark.parametrize("claimed_before", [True, False])
def test_a_message_that_waits_for_the_daily_limit_can_be_cancelled_even_without_a_mailbox_item(
    api: Api, aws: Aws, ledger: Ledger, deleted: bool, claimed_before: bool
) -> None:
    if not deleted:
        aws.put(MAILBOX, **item(lane="bulk"))
    if claimed_before:  # the provider accepted no further mail
        ledger.release(claimed(ledger))
    hold(ledger, mail(lane="bulk"), NOW, DAY_USED_UP, lines_up=True)
    assert api.cancel("/messages/m-1/cancel").json["status"] == "cancelled"
    assert type(ledger.claim(mail())).__name__ != "Claimed"


def test_a_message_that_was_handed_over_to_its_queue_is_not_cancelled(
    api: Api, aws: Aws, ledger: Ledger
) -> None:
    hold(ledger, due=NOW)
    (row,) = [row for shard in range(SHARDS) for row in waits_of(ledger).due(shard, NOW)]
    assert waits_of(ledger).hand_over(row)
    answer = api.cancel("/messages/m-1/cancel")
    assert (answer.status, answer.json["message_status"]) == (409, "scheduled")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"send_at": iso(NOW)},
        {"send_at": iso(NOW - 60)},
        {"send_at": "soon"},
    ],
)
def test_a_message_that_does_not_wait_is_not_cancelled(api: Api, aws: Aws, changes: dict[str, Any]) -> None:
    aws.put(MAILBOX, **item(**changes))
    answer = api.cancel("/messages/m-1/cancel")
    assert (answer.status, answer.json["message_status"]) == (409, "ready")
    assert aws.item() == {}


def test_a_sent_message_is_not_cancelled(api: Api, aws: Aws, ledger: Ledger) -> None:
    aws.put(MAILBOX, **item(send_at=LATER))
    ledger.complete(claimed(ledger), "ses", "1")
    answer = api.cancel("/messages/m-1/cancel")
    assert (answer.status, answer.json["message_status"]) == (409, "sent")
    assert aws.item()["status"] == "sent"


def test_a_message_that_is_claimed_during_the_cancellation_is_not_cancelled(
    api: Api, aws: Aws, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    aws.put(MAILBOX, **item(send_at=LATER))
    cancel = LedgerTable.cancel

    def late(self: LedgerTable, *arguments: Any, **named: Any) -> bool:
        claimed(ledger)
        return cancel(self, *arguments, **named)

    monkeypatch.setattr(LedgerTable, "cancel", late)
    answer = api.cancel("/messages/m-1/cancel")
    assert (answer.status, answer.json["message_status"]) == (409, "sending")
