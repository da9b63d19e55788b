"""Which dead-letter queues a pass goes through: an alarm's, the one that somebody names, or all."""

from typing import Any

import pytest

from tests.support.unit.dead_letter_office import QUEUES, Office, open_office
from tests.support.unit.shared import Aws, FakeClock


@pytest.fixture
def office(aws: Aws, clock: FakeClock) -> Office:
    return open_office(aws, clock)


def alarm(name: str, state: str = "ALARM") -> dict[str, Any]:
    """What EventBridge hands over, in the form that CloudWatch's user guide shows."""
    return {
        "version": "0",
        "id": "c4c1c1c9-6542-e61b-6ef0-8c4d36933a92",
        "detail-type": "CloudWatch Alarm State Change",
        "source": "aws.cloudwatch",
        "account": "123456789012",
        "time": "2026-11-21T09:00:00Z",
        "region": "eu-central-1",
        "resources": [f"arn:aws:cloudwatch:eu-central-1:123456789012:alarm:{name}"],
        "detail": {
            "alarmName": name,
            "state": {
                "value": state,
                "reason": "Threshold Crossed",
                "timestamp": "2026-11-21T09:00:00.000+0000",
            },
            "previousState": {"value": "OK"},
            "configuration": {"metrics": []},
        },
    }


SCHEDULE = {"version": "0", "detail-type": "Scheduled Event", "source": "aws.events", "detail": {}}


@pytest.mark.parametrize(
    ("event", "queues"),
    [
        (alarm("mailroom-test-mail-dlq-not-empty"), {"mail-dlq"}),
        (alarm("mailroom-test-fax-dlq-not-empty"), {"fax-dlq.fifo"}),
        (alarm("mailroom-test-mail-dlq-not-empty", "OK"), set()),
        (alarm("mailroom-test-mail-dlq-not-empty", "INSUFFICIENT_DATA"), set()),
        (SCHEDULE, set(QUEUES)),
        ({}, set(QUEUES)),
        ({"queue": "webhook-dlq"}, {"webhook-dlq"}),
        ({"queue": "fax-dlq.fifo"}, {"fax-dlq.fifo"}),
    ],
)
def test_an_event_says_which_queues(office: Office, event: dict[str, Any], queues: set[str]) -> None:
    assert office.look(event).keys() == queues


@pytest.mark.parametrize(
    ("event", "sentence"),
    [
        ({"queue": "mail"}, "no queue 'mail' here; there are: fax-dlq.fifo, feedback-dlq, mail-dlq"),
        ({"queue": None}, "no queue None here"),
        ({"queue": ["mail-dlq"]}, "no queue"),
        (alarm("mailroom-other-mail-dlq-not-empty"), "no alarm 'mailroom-other-mail-dlq-not-empty' here"),
    ],
)
def test_a_queue_or_an_alarm_that_is_not_the_stages_is_refused(
    office: Office, event: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        office.look(event)
    assert office.sqs.calls == []
