"""When the alarms of outcomes ring, evaluated from the templates with drawn metrics."""

from random import Random

import pytest

from mailroom.delivery.backoff import backoff
from mailroom_local.pump.alarms import state_of
from mailroom_stacks.settings.load import load
from tests.support.stacks.alarm import alarm, alarms
from tests.support.stacks.metric_log import BEGIN, MetricLog
from tests.support.stacks.refusals import STAGES
from tests.support.stacks.templates import Templates

HOUR = 60
"""Minutes of an hour."""
LATEST = 5
UNANSWERED, ANSWERED = ("Retried", "Unknown", "Misconfigured"), ("Sent", "Rejected")
TRIES, FAX_TRIES = "mailroom-dev-sms-tries-failing", "mailroom-dev-fax-tries-failing"
MESSAGES = "mailroom-dev-mail-messages-failing"


def log_tries(log: MetricLog, name: str, seconds: list[float], function: str = "send-sms") -> None:
    for second in seconds:
        log.add(name, second, service=function, stage="dev")


def tries_of_one(random: Random, put: float, until: float) -> list[float]:
    """Return the seconds at which a message is tried that its provider never answers."""
    times, seconds, receives = load(STAGES, "dev").times, [], 0
    second = put
    while second < until:
        seconds.append(second)
        receives += 1
        second += backoff(receives, times.backoff, times.backoff_cap, random.random)
    return seconds


@pytest.mark.parametrize("seed", range(15))
def test_one_message_that_is_retried_for_an_hour_rings_nothing(whole: Templates, seed: int) -> None:
    random, log = Random(seed), idle(whole, release_from=0, canary_from=0)
    log_tries(log, random.choice(["Retried", "Unknown"]), tries_of_one(random, random.random() * 60, 3600))
    assert [each.name for each in alarms(whole) if log.ringing_minutes(each.properties, HOUR)] == []


@pytest.mark.parametrize("seed", range(8))
def test_a_provider_that_is_down_rings_in_the_third_minute_with_twelve_codes(
    whole: Templates, seed: int
) -> None:
    random, log = Random(seed), MetricLog()
    for _ in range(12):
        log_tries(log, random.choice(UNANSWERED[:2]), tries_of_one(random, random.random() * 10, 3600))
    assert log.ringing_minutes(alarm(whole, TRIES), HOUR)[:1] == [2]


def test_the_alarm_of_a_lane_ends_after_the_provider_answers_again(whole: Templates) -> None:
    log = MetricLog()
    log_tries(log, "Retried", [second * 5.0 for second in range(120)])
    log_tries(log, "Sent", [600.0 + second for second in range(600)])
    assert log.ringing_minutes(alarm(whole, TRIES), HOUR) == [*range(2, 12)]


def test_the_alarm_of_faxes_counts_the_submits(whole: Templates) -> None:
    log = MetricLog()
    log_tries(log, "Misconfigured", [second * 10.0 for second in range(60)], "send-fax")
    assert log.ringing_minutes(alarm(whole, FAX_TRIES), 10) == [*range(2, 10)]
    log_tries(log, "Submitted", [second * 7.0 for second in range(86)], "send-fax")
    assert log.ringing_minutes(alarm(whole, FAX_TRIES), 10) == []


@pytest.mark.parametrize("seed", range(10))
def test_a_lane_rings_if_half_of_the_tries_fail_in_three_of_five_minutes(whole: Templates, seed: int) -> None:
    random, log = Random(seed), MetricLog()
    failing = [random.choice([0, 0, 3, 4, 5, 50]) for _ in range(HOUR)]
    answered = [random.choice([0, 3, 4, 5, 6, 50]) for _ in range(HOUR)]
    for minute in range(HOUR):
        log_tries(log, random.choice(UNANSWERED), [minute * 60.0] * failing[minute])
        log_tries(log, random.choice(ANSWERED), [minute * 60.0] * answered[minute])
    bad = [no >= 4 and no >= yes for no, yes in zip(failing, answered, strict=True)]
    expected = [minute for minute in range(HOUR) if sum(bad[max(0, minute + 1 - LATEST) : minute + 1]) >= 3]
    assert log.ringing_minutes(alarm(whole, TRIES), HOUR) == expected
    assert expected


def test_each_lane_and_channel_has_its_alarm_and_no_other(whole: Templates, dev: Templates) -> None:
    kinds = ("-tries-failing", "-messages-failing")
    names = {each.name.removeprefix("mailroom-dev-") for each in alarms(whole) if each.name.endswith(kinds)}
    rows = [*load(STAGES, "dev").lane_rows()]
    assert {f"{row.queue}-tries-failing" for row in rows} <= names
    assert {f"{row.event_type}-messages-failing" for row in rows} <= names
    assert {"fax-tries-failing", "fax-messages-failing"} <= names
    assert not {name for name in names if name.startswith(("webhook", "feedback"))}


def log_ended(log: MetricLog, minute: int, sent: int, failed: int, lane: str = "send-mail") -> None:
    log.add("Sent", minute * 60, sent, service=lane, stage="dev")
    log.add("Failed", minute * 60, failed, channel="mail", stage="dev")


def test_forty_mails_that_fail_by_a_renamed_variable_ring_at_once(whole: Templates) -> None:
    log = MetricLog()
    log_ended(log, 0, 100, 0)
    log_ended(log, 30, 0, 40)
    assert log.ringing_minutes(alarm(whole, MESSAGES), 2 * HOUR) == [*range(30, 60)]


@pytest.mark.parametrize("seed", range(10))
def test_a_channel_rings_if_a_fifth_of_fifty_messages_of_an_hour_fail(whole: Templates, seed: int) -> None:
    random, log = Random(seed), MetricLog()
    minutes = 3 * HOUR
    ended = [(random.choice([0, 1, 2]), random.choice([0, 0, 0, 1])) for _ in range(minutes)]
    for minute, (sent, failed) in enumerate(ended):
        log_ended(log, minute, sent, failed, random.choice(["send-mail", "send-mail-bulk"]))

    def is_bad(minute: int) -> bool:
        window = ended[max(0, minute + 1 - HOUR) : minute + 1]
        all_sent = sum(sent for sent, _ in window)
        all_failed = sum(failed for _, failed in window)
        return all_sent + all_failed >= 50 and 5 * all_failed >= all_sent + all_failed

    expected = [minute for minute in range(minutes) if is_bad(minute)]
    assert log.ringing_minutes(alarm(whole, MESSAGES), minutes) == expected


@pytest.mark.parametrize("seed", range(10))
def test_the_alarm_of_a_used_up_day_and_its_warning_never_ring_together(whole: Templates, seed: int) -> None:
    random, log = Random(seed), MetricLog()
    log.add("DayUsedUp", HOUR * 60, service="send-mail", stage="dev")
    for minute in range(3 * HOUR):
        if random.random() < 0.02:
            log.add("DayUsedUp", minute * 60, service="send-mail", stage="dev")
        if random.random() < 0.1:
            lane = random.choice(["send-mail-bulk", "collect"])
            name = "WaitsForDay" if lane == "send-mail-bulk" else "PagesWaitForDay"
            log.add(name, minute * 60, random.randrange(1, 500), service=lane, stage="dev")
    urgent, warning = (
        {*log.ringing_minutes(alarm(whole, f"mailroom-dev-mail-day-used-up{end}"), 3 * HOUR)}
        for end in ("", "-warning")
    )
    assert urgent
    assert warning
    assert not urgent & warning


@pytest.mark.parametrize("name", ["dev", "prod", "whole", "lean", "by_resend", "two_providers"])
def test_an_idle_stage_rings_nothing_from_its_deployment_on(
    name: str, request: pytest.FixtureRequest
) -> None:
    stage: Templates = request.getfixturevalue(name)
    log = idle(stage, release_from=3, canary_from=9)
    ringing = {each.name: log.ringing_minutes(each.properties, HOUR) for each in alarms(stage)}
    assert {alarm_name for alarm_name, minutes in ringing.items() if minutes} == set()


def test_a_stage_that_never_begins_to_work_rings_after_its_warm_up(whole: Templates) -> None:
    log = MetricLog()
    ringing = {each.name: log.ringing_minutes(each.properties, HOUR)[:1] for each in alarms(whole)}
    assert {alarm_name: first for alarm_name, first in ringing.items() if first} == {
        "mailroom-dev-release-late": [10],
        "mailroom-dev-canary-missing": [15],
    }


@pytest.mark.parametrize("name", ["whole", "by_resend", "two_providers"])
def test_the_local_stage_can_evaluate_each_alarm(name: str, request: pytest.FixtureRequest) -> None:
    for each in alarms(request.getfixturevalue(name)):
        assert state_of(each.properties, lambda _query, _end: 1.0, BEGIN) in ("ALARM", "OK")


def idle(stage: Templates, *, release_from: int, canary_from: int) -> MetricLog:
    """Return the metrics of an hour without messages."""
    log = MetricLog()
    name = alarms(stage)[0].name.split("-")[1]
    for minute in range(release_from, HOUR):
        log.add("ReleaseLate", minute * 60, 0, service="release", stage=name)
    for minute in range(canary_from, HOUR, 5):
        log.add("CanaryDelivered", minute * 60, service="feedback", stage=name)
    return log
