"""The handler dead_letters, as Lambda runs it."""

import json

import pytest

from tests.support.unit.dead_letter_office import open_office
from tests.support.unit.events import lambda_context
from tests.support.unit.functions import Load
from tests.support.unit.shared import Aws, FakeClock, claimed, item, mail


def test_an_alarm_event_starts_a_pass_over_dead_letters_only_if_enough_time_remains(
    load: Load, aws: Aws, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    office = open_office(aws, clock)
    monkeypatch.setenv("DEAD_LETTER_QUEUES", json.dumps({"mail-dlq": office.urls["mail-dlq"]}))
    monkeypatch.setattr("mailroom.dead_letters.inspector.LONG_POLL_SECONDS", 0)
    office.ledger.release(claimed(office.ledger, mail()), "retry", "throttled")
    office.put("mail-dlq", item())
    handler = load("dead_letters")
    detail = {"alarmName": "mailroom-test-mail-dlq-not-empty", "state": {"value": "ALARM"}}
    assert handler({"detail": detail}, lambda_context(5_000)) == {"mail-dlq": 0}
    assert handler({"detail": detail}, lambda_context()) == {"mail-dlq": 1}
    assert "dead_lettered_at" in aws.item()
