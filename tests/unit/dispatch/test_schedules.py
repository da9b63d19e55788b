"""Schedules: one a message, with a name that a repeat runs into."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st

from mailroom.dispatch.dispatcher import ScheduleWriter, name_of
from mailroom.message.message import Key
from tests.support.unit.fakes import Meddler, client_error, failing
from tests.support.unit.shared import GROUP, KEY, NOW, Aws

ROLE = "arn:aws:iam::123456789012:role/mailroom-test-schedules"
TARGET = "arn:aws:sqs:eu-central-1:123456789012:mailroom-test-scheduled"


def made(client: Any) -> ScheduleWriter:
    return ScheduleWriter(client, GROUP, role_arn=ROLE, target_arn=TARGET, dead_letter_arn=TARGET + "-dlq")


@pytest.fixture
def schedules(aws: Aws) -> ScheduleWriter:
    return made(aws.scheduler)


@given(st.text(), st.text())
def test_a_name_is_deterministic_and_within_the_services_bounds(id_: str, event_type: str) -> None:
    name = name_of(Key(id_, event_type), 7)
    assert name == name_of(Key(id_, event_type), 7)
    assert 1 <= len(name) <= 64
    assert name.isascii()
    assert name.isalnum()


def test_messages_that_differ_in_id_or_channel_have_schedules_of_their_own() -> None:
    keys = [Key("a", "mail"), Key("b", "mail"), Key("a", "sms"), Key("amail", "x"), Key("a", "mailx")]
    assert len({name_of(key, 7) for key in keys}) == len(keys)


def test_a_schedule_fires_once_never_early_and_sends_the_key_alone(
    aws: Aws, schedules: ScheduleWriter
) -> None:
    schedules.put(Key("ü-1", "mail"), NOW + 86_400.75)
    found = aws.scheduler.get_schedule(Name=name_of(Key("ü-1", "mail"), int(NOW) + 86_401), GroupName=GROUP)
    assert found["ScheduleExpression"] == "at(2026-11-22T09:00:01)"  # 09:00:00.75, in whole seconds
    assert found["ScheduleExpressionTimezone"] == "UTC"
    assert found["FlexibleTimeWindow"] == {"Mode": "OFF"}
    assert found["ActionAfterCompletion"] == "DELETE"
    assert (found["Target"]["Arn"], found["Target"]["RoleArn"]) == (TARGET, ROLE)
    assert found["Target"]["DeadLetterConfig"] == {"Arn": TARGET + "-dlq"}
    assert json.loads(found["Target"]["Input"]) == {"id": "ü-1", "event_type": "mail"}


def test_a_repeat_conflicts_with_itself_and_leaves_the_first_as_it_is(
    aws: Aws, schedules: ScheduleWriter
) -> None:
    schedules.put(KEY, NOW + 3600)
    schedules.put(KEY, NOW + 3600)
    (found,) = aws.scheduler.list_schedules(GroupName=GROUP)["Schedules"]
    schedule = aws.scheduler.get_schedule(Name=found["Name"], GroupName=GROUP)
    assert schedule["ScheduleExpression"] == "at(2026-11-21T10:00:00)"


def test_another_time_is_another_schedule(aws: Aws, schedules: ScheduleWriter) -> None:
    schedules.put(KEY, NOW + 3600)
    schedules.put(KEY, NOW + 7200)
    assert len(aws.scheduler.list_schedules(GroupName=GROUP)["Schedules"]) == 2


def test_any_other_refusal_is_not_swallowed(aws: Aws) -> None:
    client = Meddler(aws.scheduler, create_schedule=failing(client_error("ThrottlingException", status=429)))
    with pytest.raises(ClientError, match="ThrottlingException"):
        made(client).put(KEY, NOW + 3600)
