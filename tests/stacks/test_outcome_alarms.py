"""When the alarms of outcomes ring, evaluated from the templates with drawn metrics."""

from random import Random

import pytest

from mailroom_local.pump.alarms import state_of
from mailroom_stacks.settings.load import load
from tests.support.failing_tries import KINDS, failing_tries
from tests.support.stacks.alarm import alarm_named, alarms
from tests.support.stacks.metric_log import BEGIN, MetricLog
from tests.support.stacks.refusals import STAGES
from tests.support.stacks.templates import Templates
from tests.support.stacks.variants import variant

HOUR = 60
"""Minutes of an hour."""
LATEST = 5
UNANSWERED = ("Retried", "Unknown", "Misconfigured")
TRIES, FAX_TRIES = "mailroom-dev-sms-tries-failing", "mailroom-dev-fax-tries-failing"
MESSAGES = "mailroom-dev-mail-messages-failing"


def log_tries(log: MetricLog, name: str, seconds: list[float], function: str = "send-sms") -> None:
    for second in seconds:
        log.add(name, second, service=function, stage="dev")


def tries_of_one(kind: str, random: Random, put: float) -> list[tuple[float, str]]:
    """Return the tries of an hour of a message that the provider of a lane `normal` never accepts."""
    settings = load(STAGES, "prod")
    times, (row,) = settings.times, [row for row in settings.lane_rows() if row.queue == "sms"]
    tries = failing_tries(
        kind,
        HOUR * 60,
        lease=row.rules.lease,
        base=times.backoff,
        cap=times.backoff_cap,
        misconfigured=times.misconfigured,
        random=random.random,
    )
    return [(put + second, name) for second, name in tries]


def log_messages(log: MetricLog, messages: int, kind: str, random: Random, spread: float) -> None:
    """Log the tries of messages that are put within `spread` seconds."""
    for _ in range(messages):
        for second, name in tries_of_one(kind, random, random.random() * spread):
            log_tries(log, name, [second])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", KINDS)
def test_a_single_message_that_is_retried_for_an_hour_rings_no_alarm(
    whole: Templates, kind: str, seed: int
) -> None:
    random, log = Random(seed), idle(whole, release_from=0, canary_from=0)
    log_messages(log, 1, kind, random, spread=60)
    assert [each.name for each in alarms(whole) if log.ringing_minutes(each.properties, HOUR)] == []


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", KINDS)
def test_an_alarm_rings_within_three_minutes_if_twelve_messages_fail_in_a_providers_outage(
    whole: Templates, kind: str, seed: int
) -> None:
    random, log = Random(seed), MetricLog()
    log_messages(log, 12, kind, random, spread=10)
    first, *_ = log.ringing_minutes(alarm_named(whole, TRIES), HOUR)
    assert first <= 2


@pytest.mark.parametrize("kind", KINDS)
def test_an_outage_rings_an_alarm_for_most_of_an_hour_if_three_messages_a_minute_fail(
    whole: Templates, kind: str
) -> None:
    random, log = Random(kind), MetricLog()
    log_messages(log, 3 * HOUR, kind, random, spread=HOUR * 60)
    first, *others = log.ringing_minutes(alarm_named(whole, TRIES), HOUR)
    assert first <= 5
    assert len(others) > HOUR * 0.9 - first


def test_the_alarm_of_a_lane_ends_after_the_provider_answers_again(whole: Templates) -> None:
    log = MetricLog()
    log_tries(log, "Retried", [second * 5.0 for second in range(120)])
    log_tries(log, "Sent", [600.0 + second for second in range(600)])
    assert log.ringing_minutes(alarm_named(whole, TRIES), HOUR) == [*range(1, 13)]


def test_the_alarm_of_failing_fax_tries_does_not_ring_if_more_submits_succeed_than_fail(
    whole: Templates,
) -> None:
    log = MetricLog()
    log_tries(log, "Misconfigured", [second * 10.0 for second in range(60)], "send-fax")
    assert log.ringing_minutes(alarm_named(whole, FAX_TRIES), 10) == [*range(1, 10)]
    log_tries(log, "Submitted", [second * 7.0 for second in range(86)], "send-fax")
    assert log.ringing_minutes(alarm_named(whole, FAX_TRIES), 10) == []


@pytest.mark.parametrize("seed", range(10))
def test_the_alarm_of_a_lane_rings_if_half_of_the_tries_fail_in_two_of_five_minutes(
    whole: Templates, seed: int
) -> None:
    random, log = Random(seed), MetricLog()
    failing = [random.choice([0, 0, 3, 4, 5, 50]) for _ in range(HOUR)]
    answered = [random.choice([0, 3, 4, 5, 6, 50]) for _ in range(HOUR)]
    for minute in range(HOUR):
        log_tries(log, random.choice(UNANSWERED), [minute * 60.0] * failing[minute])
        log_tries(log, "Sent", [minute * 60.0] * answered[minute])
    bad = [no >= 4 and no >= yes for no, yes in zip(failing, answered, strict=True)]
    expected = [minute for minute in range(HOUR) if sum(bad[max(0, minute + 1 - LATEST) : minute + 1]) >= 2]
    assert log.ringing_minutes(alarm_named(whole, TRIES), HOUR) == expected
    assert expected


def test_lanes_have_alarms_of_failing_tries_and_channels_of_failing_messages_except_webhooks(
    whole: Templates, dev: Templates
) -> None:
    kinds = ("-tries-failing", "-messages-failing")
    names = {each.name.removeprefix("mailroom-dev-") for each in alarms(whole) if each.name.endswith(kinds)}
    rows = [*load(STAGES, "dev").lane_rows()]
    assert {f"{row.queue}-tries-failing" for row in rows} <= names
    assert {f"{row.event_type}-messages-failing" for row in rows} <= names
    assert {"fax-tries-failing", "fax-messages-failing"} <= names
    assert not {name for name in names if name.startswith(("webhook", "feedback"))}


def log_ended(log: MetricLog, minute: int, sent: int, failed: int = 0, late: int = 0) -> None:
    """Log mails that ended in a minute: `late` are those that bounced after their acceptance."""
    log.add("Sent", minute * 60, sent, service="send-mail", stage="dev")
    for number, reason in ((failed, "invalid"), (late, "bounced")):
        if number:
            log.add("Failed", minute * 60, number, channel="mail", stage="dev")
            log.add("Failed", minute * 60, number, channel="mail", reason=reason, stage="dev")


def test_forty_failed_mails_within_an_hour_of_a_hundred_sent_ones_ring_an_alarm_at_once(
    whole: Templates,
) -> None:
    log = MetricLog()
    log_ended(log, 0, 100)
    log_ended(log, 30, 0, failed=40)
    assert log.ringing_minutes(alarm_named(whole, MESSAGES), 2 * HOUR) == [*range(30, 60)]


def test_late_bounces_of_a_campaign_ring_no_alarm_while_few_mails_are_sent(whole: Templates) -> None:
    log = MetricLog()
    log_ended(log, 0, 10_000)
    for minute in range(70, 110):
        log_ended(log, minute, minute % 2, late=3)
    assert log.ringing_minutes(alarm_named(whole, MESSAGES), 3 * HOUR) == []


@pytest.mark.parametrize("seed", range(10))
def test_the_alarm_of_a_channel_rings_if_a_fifth_of_fifty_messages_of_an_hour_fail(
    whole: Templates, seed: int
) -> None:
    random, log = Random(seed), MetricLog()
    minutes = 3 * HOUR
    ended = [
        (random.choice([0, 1, 2]), random.choice([0, 0, 0, 1]), random.choice([0, 0, 0, 0, 1]))
        for _ in range(minutes)
    ]
    for minute, (sent, failed, late) in enumerate(ended):
        log_ended(log, minute, sent, failed, late)

    def is_bad(minute: int) -> bool:
        window = ended[max(0, minute + 1 - HOUR) : minute + 1]
        sent, failed, late = (sum(part[at] for part in window) for at in range(3))
        return sent + failed >= 50 and 5 * (failed + late) >= sent + failed

    expected = [minute for minute in range(minutes) if is_bad(minute)]
    assert log.ringing_minutes(alarm_named(whole, MESSAGES), minutes) == expected


@pytest.mark.parametrize("seed", range(10))
def test_the_alarm_of_a_used_up_daily_limit_and_its_warning_never_ring_together(
    whole: Templates, seed: int
) -> None:
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
        {*log.ringing_minutes(alarm_named(whole, f"mailroom-dev-mail-day-used-up{end}"), 3 * HOUR)}
        for end in ("", "-warning")
    )
    assert urgent
    assert warning
    assert not urgent & warning


def test_the_warning_of_a_used_up_daily_limit_rings_for_waiting_bulk_messages_even_without_per_day() -> None:
    lanes = {"normal": {"share": 0.5}, "bulk": {"share": 0.5}}
    stage, log = variant({"channels.sms.lanes": lanes}), MetricLog()
    log.add("WaitsForDay", 0, 10, service="send-sms-bulk", stage="dev")
    assert log.ringing_minutes(alarm_named(stage, "mailroom-dev-sms-day-used-up-warning"), HOUR) == [
        *range(25)
    ]


@pytest.mark.parametrize("name", ["dev", "prod", "whole", "lean", "by_resend", "two_providers"])
def test_an_idle_stage_rings_no_alarm_after_its_deployment(name: str, request: pytest.FixtureRequest) -> None:
    stage: Templates = request.getfixturevalue(name)
    log = idle(stage, release_from=3, canary_from=9)
    ringing = {each.name: log.ringing_minutes(each.properties, HOUR) for each in alarms(stage)}
    assert {alarm_name for alarm_name, minutes in ringing.items() if minutes} == set()


def test_alarms_of_release_and_canary_ring_after_a_warm_up_if_a_stage_never_begins_to_work(
    whole: Templates,
) -> None:
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
