"""Outcomes on EventBridge: the content of an event, and retries of events that the bus refuses."""

import json
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from mailroom.message.outcome import SILENT
from tests.support.unit.consequences import FAX, Consequences, busy, ledger_record
from tests.support.unit.events import lines_about
from tests.support.unit.fakes import client_error
from tests.support.unit.post import Log
from tests.support.unit.shared import NOW, Aws, FakeClock

MAIL: dict[str, Any] = {
    "id": "m-1",
    "event_type": "mail",
    "status": "sending",
    "to": "ada@example.com",
    "topic": "news",
    "attempts": 0,
}


class Bus:
    """EventBridge, which refuses events or raises errors by the ids of their messages."""

    def __init__(self) -> None:
        self.calls: list[list[dict[str, Any]]] = []
        self.refused: dict[str, str] = {}
        self.raises: dict[str, Exception] = {}

    def put_events(self, *, Entries: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
        self.calls.append(Entries)
        ids = [json.loads(entry["Detail"])["id"] for entry in Entries]
        for id_ in ids:
            if id_ in self.raises:
                raise self.raises[id_]
        results = [
            {"ErrorCode": self.refused[id_]} if id_ in self.refused else {"EventId": id_} for id_ in ids
        ]
        return {"FailedEntryCount": len(self.refused), "Entries": results}

    @property
    def details(self) -> list[dict[str, Any]]:
        """The details of all entries, in order."""
        return [json.loads(entry["Detail"]) for call in self.calls for entry in call]


@pytest.fixture
def bus() -> Bus:
    return Bus()


@pytest.fixture
def consequences_with_bus(aws: Aws, clock: FakeClock, bus: Bus) -> Consequences:
    campaigns = ["weekly"]
    return Consequences(
        aws, clock, events=bus, event_bus="orders", event_source="mailroom.test", campaigns=campaigns
    )


def test_an_eventbridge_event_has_the_outcome_of_the_message_and_the_time(
    consequences_with_bus: Consequences, bus: Bus
) -> None:
    old = {**MAIL, "id": "weekly#2026-11-21#7"}
    assert (
        consequences_with_bus.handle(ledger_record(1, old, status="sent", attempts=1, provider="ses"))
        == set()
    )
    ((entry,),) = bus.calls
    assert (entry["EventBusName"], entry["Source"], entry["DetailType"]) == (
        "orders",
        "mailroom.test",
        "Message Outcome",
    )
    assert entry["Time"].timestamp() == NOW
    detail = json.loads(entry["Detail"])
    assert detail.pop("event_id").startswith("msg_")
    assert detail == {
        "id": "weekly#2026-11-21#7",
        "event_type": "mail",
        "status": "sent",
        "attempt": 1,
        "timestamp": NOW,
        "provider": "ses",
        "topic": "news",
        "campaign": "weekly",
    }


def test_an_eventbridge_event_omits_unknown_fields(consequences_with_bus: Consequences, bus: Bus) -> None:
    old = {"id": "weekly-7", "event_type": "mail"}
    consequences_with_bus.handle(
        ledger_record(1, old, status="failed", error={"code": "invalid", "message": "to: is missing"})
    )
    (detail,) = bus.details
    assert detail.keys() == {"event_id", "id", "event_type", "status", "attempt", "timestamp", "code"}
    assert (detail["attempt"], detail["code"]) == (0, "invalid")


def test_an_eventbridge_event_and_its_repeat_have_the_id_of_the_callback(
    consequences_with_bus: Consequences, bus: Bus, aws: Aws
) -> None:
    consequences_with_bus.handle(busy())
    consequences_with_bus.handle(busy())
    first, second = aws.bodies("webhook")
    assert [detail["event_id"] for detail in bus.details] == [first["webhook_id"], second["webhook_id"]]
    assert first["webhook_id"] == second["webhook_id"]


@pytest.mark.parametrize(
    ("status", "facts", "code"),
    [
        ("retrying", {"error": {"code": "busy", "message": "Fax status: busy"}}, "busy"),
        (
            "suppressed",
            {"error": {"code": "opted_out", "message": "ada@example.com has opted out"}},
            "opted_out",
        ),
        ("bounced", {"bounce_type": "Permanent", "diagnostic_code": "550 ada@example.com"}, "Permanent"),
        ("undelivered", {"error_code": "30003"}, "30003"),
        ("undelivered", {"bounce_type": "Transient"}, "Transient"),
        ("complained", {"complaint_type": "abuse"}, "abuse"),
        ("bounced", {"error": {"code": "bounced", "message": "for one of its recipients"}}, "bounced"),
        ("delivered", {"bounce_type": "Transient"}, None),
    ],
)
def test_the_code_of_an_eventbridge_event_is_the_reason_of_the_status(
    consequences_with_bus: Consequences, bus: Bus, status: str, facts: dict[str, Any], code: str | None
) -> None:
    consequences_with_bus.handle(ledger_record(1, MAIL, status=status, attempts=1, **facts))
    (detail,) = bus.details
    assert (detail["status"], detail.get("code")) == (status, code)


def test_an_eventbridge_event_contains_neither_recipients_nor_texts_about_them(
    consequences_with_bus: Consequences, bus: Bus
) -> None:
    private = {
        "to": ["Ada <ada@example.com>", "+16175551234"],
        "recipients": {"ada@example.com": {"status": "bounced", "error": "550 no ada@example.com"}},
        "error": {"code": "bounced", "message": "ada@example.com is unknown"},
        "diagnostic_code": "550 ada@example.com",
        "line": "+16175551234",
        "pdf_url": "https://files.example.com/ada.pdf",
        "history": [{"status": "sent"}],
    }
    consequences_with_bus.handle(ledger_record(1, {**MAIL, **private}, status="bounced", attempts=1))
    ((entry,),) = bus.calls
    assert not [text for text in ("ada", "5551234", "files") if text in entry["Detail"]]


@pytest.mark.parametrize(
    "record",
    [
        *(ledger_record(1, {**MAIL, "status": "retrying"}, status=status) for status in SILENT),
        ledger_record(1, {**MAIL, "status": "sent"}, callbacks={"sent.1": {"status": "delivered"}}),
        ledger_record(1, {**MAIL, "status": "failed"}, status="retrying", generation=1),
    ],
)
def test_a_ledger_change_that_is_not_an_outcome_causes_no_eventbridge_event(
    consequences_with_bus: Consequences, bus: Bus, record: dict[str, Any]
) -> None:
    assert consequences_with_bus.handle(record) == set()
    assert bus.calls == []


def test_a_call_to_eventbridge_has_at_most_ten_events(consequences_with_bus: Consequences, bus: Bus) -> None:
    records = [
        ledger_record(100 + number, {**MAIL, "id": f"m-{number}"}, status="sent") for number in range(25)
    ]
    assert consequences_with_bus.handle(*records) == set()
    assert [len(call) for call in bus.calls] == [10, 10, 5]


def test_only_the_events_that_eventbridge_refuses_are_retried(
    consequences_with_bus: Consequences, bus: Bus, log: Log
) -> None:
    bus.refused = {"m-3": "ThrottlingException", "m-14": "InternalFailure"}
    records = [
        ledger_record(100 + number, {**MAIL, "id": f"m-{number}"}, status="sent") for number in range(25)
    ]
    assert consequences_with_bus.handle(*records) == {"103", "114"}
    codes = [line["codes"] for line in lines_about(log(), "events refused by the bus")]
    assert codes == [["ThrottlingException"], ["InternalFailure"]]


@pytest.mark.parametrize(
    "error",
    [client_error("AccessDeniedException"), ReadTimeoutError(endpoint_url="https://events.example.com")],
)
def test_after_a_failed_call_to_eventbridge_all_remaining_events_are_retried_later(
    consequences_with_bus: Consequences, bus: Bus, error: Exception, log: Log
) -> None:
    bus.raises = {"m-12": error}
    records = [
        ledger_record(100 + number, {**MAIL, "id": f"m-{number}"}, status="sent") for number in range(35)
    ]
    assert consequences_with_bus.handle(*records) == {str(number) for number in range(110, 135)}
    assert len(bus.calls) == 2
    (line,) = lines_about(log(), "events not put on the bus")
    assert line["entries"] == 25


def test_an_error_of_eventbridge_delays_neither_callbacks_nor_retries(
    consequences_with_bus: Consequences, bus: Bus
) -> None:
    bus.raises = {"f-1": client_error("InternalException", status=500)}
    assert consequences_with_bus.handle(busy(7)) == {"7"}
    assert (
        len(consequences_with_bus.entries("webhook")) == len(consequences_with_bus.entries("fax-retry")) == 1
    )


def test_the_largest_possible_event_has_less_than_20_000_bytes(
    consequences_with_bus: Consequences, bus: Bus
) -> None:
    """Only DynamoDB limits the key of an invalid item."""
    largest = {**FAX, "id": "\x01" * 2048, "event_type": "\x01" * 1024, "topic": "\U0001f4ec" * 64}
    consequences_with_bus.handle(ledger_record(1, largest, status="failed", error={"code": "x" * 64}))
    ((entry,),) = bus.calls
    assert len(entry["Detail"].encode()) < 20_000


def test_an_eventbridge_event_of_a_message_cancelled_by_its_unless_names_the_fulfilling_message(
    consequences_with_bus: Consequences, bus: Bus
) -> None:
    other = {"id": "code-17", "event_type": "sms", "status": "delivered"}
    error = {"code": "unless", "message": "unless: sms code-17 is delivered"}
    consequences_with_bus.handle(
        ledger_record(1, MAIL, status="cancelled", error=error, unless_fulfilled=other)
    )
    (detail,) = bus.details
    assert (detail["code"], detail["unless"]) == ("unless", other)
