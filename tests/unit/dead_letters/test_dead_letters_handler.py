"""The handler dead_letters, as Lambda runs it."""

import json

import pytest

from tests.support.unit.dead_letter_office import TABLE, Office, open_office
from tests.support.unit.events import lambda_context
from tests.support.unit.functions import Load
from tests.support.unit.shared import Aws, FakeClock, claimed, item, mail


@pytest.fixture
def office(load: Load, aws: Aws, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> Office:
    """Set the variables of the stack, without long polls of an empty queue."""
    office = open_office(aws, clock)
    monkeypatch.setenv("DEAD_LETTERS_TABLE", TABLE)
    monkeypatch.setenv("DEAD_LETTER_QUEUES", json.dumps({"mail-dlq": office.urls["mail-dlq"]}))
    monkeypatch.setattr("mailroom.dead_letters.passes.LONG_POLL_SECONDS", 0)
    return office


def test_an_alarm_event_starts_a_check_of_the_alarms_dead_letter_queue(
    load: Load, office: Office, aws: Aws, capsys: pytest.CaptureFixture[str]
) -> None:
    office.ledger.release(claimed(office.ledger, mail()), "retry", "throttled")
    office.put("mail-dlq", item())
    detail = {"alarmName": "mailroom-test-mail-dlq-not-empty", "state": {"value": "ALARM"}}
    handler = load("dead_letters")
    assert handler({"detail": detail}, lambda_context()) == {"mail-dlq": {"seen": 1, "new": 1}}
    assert "dead_lettered_at" in aws.item()
    assert [entry["id"] for entry in office.entries()] == ["m-1"]
    metrics = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert metrics["DeadLetters"] == [1.0]


def test_the_dead_letters_function_without_enough_remaining_time_receives_no_dead_letter(
    load: Load, office: Office
) -> None:
    office.put("mail-dlq", item())
    assert load("dead_letters")({}, lambda_context(5_000)) == {"mail-dlq": {"seen": 0, "new": 0}}
