"""When alarms ring, and what a silence means."""

from typing import Any

import pytest

from mailroom.channels.webhook.contract import tries_that_may_fail
from mailroom_stacks.settings.load import load
from mailroom_stacks.settings.waiting import waiting_seconds
from tests.support.stacks.alarm import alarm_named, alarms
from tests.support.stacks.refusals import STAGES, dev_with
from tests.support.stacks.templates import Templates

AT_LEAST = "GreaterThanOrEqualToThreshold"
ALONE = {"messages-api", "unsubscribe", "twilio-callbacks", "dead-letters"}
"""Functions whose failed events are not delivered again."""
SHORT_DELAY = 120
"""Seconds before the time of a message at which it may be in its own queue with a delay."""


def test_every_alarm_but_the_canarys_rings_at_its_threshold_and_above(whole: Templates) -> None:
    others = [each.properties for each in alarms(whole) if each.name != "mailroom-dev-canary-missing"]
    assert {each["ComparisonOperator"] for each in others} == {AT_LEAST}


def test_the_setting_waiting_minutes_sets_the_wait_at_which_a_queues_alarm_rings() -> None:
    settings = dev_with("monitoring.waiting_minutes", {"mail": 5, "fax-retry": 2})
    assert (waiting_seconds(settings, "mail"), waiting_seconds(settings, "fax-retry")) == (300, 120)
    assert waiting_seconds(settings, "sms") == 1_020


def test_a_fax_that_waits_for_its_next_attempt_raises_no_alarm() -> None:
    usual = load(STAGES, "dev")
    assert waiting_seconds(usual, "fax-retry") == 3600 > 600
    patient = dev_with("fax.retry_delay_seconds", 3_600)
    assert waiting_seconds(patient, "fax-retry") == 3600 + 900


def test_a_webhook_that_waits_for_its_next_try_raises_no_alarm() -> None:
    slow = dev_with("webhook.delays_seconds", [1_800, 1_800, 3_600, 7_200])
    assert waiting_seconds(slow, "webhook") == SHORT_DELAY + 1_800 + 1_800 + 3_600 + 900


def test_a_message_that_is_delayed_in_its_queue_until_its_send_at_raises_no_alarm() -> None:
    settings = load(STAGES, "dev")
    for queue in ("mail", "mail-bulk", "sms", "webhook"):
        assert waiting_seconds(settings, queue) >= SHORT_DELAY + 900
    assert waiting_seconds(settings, "feedback") == 900


def test_only_alarms_of_standard_queues_mention_the_limit_of_three_receives(
    whole: Templates,
) -> None:
    ages = {each.name: each.description for each in alarms(whole) if each.name.endswith("-waiting-long")}
    assert {name for name, said in ages.items() if "received three times" not in said} == {
        "mailroom-dev-fax-waiting-long"
    }


def test_a_function_without_redelivery_raises_its_alarm_at_the_first_error_and_others_at_the_third(
    whole: Templates,
) -> None:
    for each in alarms(whole):
        if each.name.endswith("-errors"):
            function = each.name.removeprefix("mailroom-dev-").rpartition("-")[0]
            rings = each.properties
            assert rings["DatapointsToAlarm"] == (1 if function in ALONE else 3)
            assert (rings["Threshold"], rings["Statistic"], rings["Period"]) == (1, "Sum", 300)


@pytest.mark.parametrize(
    ("function", "periods"),
    [
        *(("send-mail", 3), ("send-mail-bulk", 5), ("feedback", 5), ("send-fax", 12)),
        *(("outcomes", 3), ("messages-api", 1)),
    ],
)
def test_the_alarm_of_a_slow_function_evaluates_a_longer_period(
    whole: Templates, function: str, periods: int
) -> None:
    rings = alarm_named(whole, f"mailroom-dev-{function}-errors")
    assert rings["EvaluationPeriods"] == periods
    said = f"in 3 of the last {periods} periods of five minutes" if periods > 1 else ", now: "
    assert said in rings["AlarmDescription"]


@pytest.mark.parametrize(
    ("name", "metric", "rate"),
    [
        ("ses-bounce-rate", "BounceRate", 0.05),
        ("ses-bounce-rate-warning", "BounceRate", 0.02),
        ("ses-complaint-rate", "ComplaintRate", 0.001),
        ("ses-complaint-rate-warning", "ComplaintRate", 0.0008),
    ],
)
def test_each_reputation_alarm_and_each_warning_has_its_own_threshold_for_the_accounts_rate(
    dev: Templates, name: str, metric: str, rate: float
) -> None:
    rings, queries = reputation(dev, name)
    assert queries["rate"]["Metric"] == {"Namespace": "AWS/SES", "MetricName": f"Reputation.{metric}"}
    assert rings["Threshold"] == rate
    assert "Dimensions" not in queries["rate"]["Metric"]  # rates of the whole account, as SES calculates them


@pytest.mark.parametrize("name", ["ses-bounce-rate", "ses-complaint-rate-warning"])
def test_bounce_and_complaint_rates_of_under_a_hundred_mails_a_day_do_not_ring_an_alarm(
    dev: Templates, name: str
) -> None:
    rings, queries = reputation(dev, name)
    (expression,) = (each["Expression"] for each in rings["Metrics"] if "Expression" in each)
    assert expression == "IF(sent >= 100, rate, 0)"
    assert queries["sent"]["Metric"] == {"Namespace": "AWS/SES", "MetricName": "Send"}
    looked_at = {name: (each["Stat"], each["Period"]) for name, each in queries.items()}
    assert looked_at == {"rate": ("Maximum", 86_400), "sent": ("Sum", 86_400)}
    assert rings["EvaluationPeriods"] == 1


def reputation(stage: Templates, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """An alarm on SES's rates, and the metrics that its expression looks at, by their names there."""
    rings = alarm_named(stage, f"mailroom-dev-{name}")
    return rings, {each["Id"]: each["MetricStat"] for each in rings["Metrics"] if "MetricStat" in each}


def test_a_webhook_endpoint_that_stays_dead_rings_one_alarm_from_its_first_late_try_to_its_last(
    dev: Templates,
) -> None:
    rings = alarm_named(dev, "mailroom-dev-webhooks-failing")
    dimensions = {each["Name"]: each["Value"] for each in rings["Dimensions"]}
    assert (rings["Namespace"], rings["MetricName"]) == ("Mailroom", "WebhooksFailing")
    assert dimensions == {"service": "send-webhook", "stage": "dev"}
    assert (rings["Threshold"], rings["DatapointsToAlarm"]) == (1, 1)
    looked_at = rings["EvaluationPeriods"] * rings["Period"]
    longest = max(load(STAGES, "dev").webhook.delays_seconds)
    assert longest < looked_at <= 86_400  # CloudWatch looks at a day of short periods, not more


def test_a_dead_webhook_endpoint_rings_one_alarm_even_with_the_longest_configured_wait(
    otherwise: Templates,
) -> None:
    rings = alarm_named(otherwise, "mailroom-dev-webhooks-failing")
    looked_at = rings["EvaluationPeriods"] * rings["Period"]
    assert 39_600 + 3_600 <= looked_at <= 86_400
    tries = 4
    assert f"try {tries_that_may_fail(tries) + 1} of {tries}," in rings["AlarmDescription"]


@pytest.mark.parametrize("kind", ["dlq-not-empty", "gave-up", "-dropped", "-rate", "-rate-warning"])
def test_missing_data_keep_the_state_of_an_alarm_whose_end_they_cannot_prove(
    whole: Templates, kind: str
) -> None:
    ringing = [each.properties for each in alarms(whole) if each.name.endswith(kind)]
    assert ringing
    assert {each["TreatMissingData"] for each in ringing} == {"ignore"}


def test_alarms_outside_a_few_listed_kinds_treat_missing_data_as_ok(whole: Templates) -> None:
    kinds = (
        "dlq-not-empty",
        "gave-up",
        "-dropped",
        "-rate",
        "-rate-warning",
        "release-late",
        "canary-missing",
    )
    others = [each.properties for each in alarms(whole) if not each.name.endswith(kinds)]
    assert len(others) > 50
    assert {each["TreatMissingData"] for each in others} == {"notBreaching"}


def test_an_alarm_rings_if_the_function_release_is_late_or_silent_for_five_minutes(whole: Templates) -> None:
    rings = alarm_named(whole, "mailroom-dev-release-late")
    assert (rings["MetricName"], rings["Statistic"], rings["Period"]) == ("ReleaseLate", "Maximum", 60)
    assert (rings["Threshold"], rings["EvaluationPeriods"]) == (300_000, 5)
    assert rings["TreatMissingData"] == "breaching"


def test_an_alarm_rings_if_a_message_of_an_unknown_run_was_put_a_quarter_of_an_hour_ago(
    whole: Templates,
) -> None:
    rings = alarm_named(whole, "mailroom-dev-run-unknown")
    dimensions = {each["Name"]: each["Value"] for each in rings["Dimensions"]}
    assert (rings["Namespace"], rings["MetricName"]) == ("Mailroom", "RunUnknown")
    assert dimensions == {"service": "release", "stage": "dev"}
    assert (rings["Statistic"], rings["Period"], rings["EvaluationPeriods"]) == ("Maximum", 300, 1)
    assert rings["Threshold"] == 900_000
    # `release` reports the age only if a message waits for an unknown run.
    assert rings["TreatMissingData"] == "notBreaching"


def test_the_settings_can_change_the_thresholds_of_alarms(otherwise: Templates) -> None:
    names = ("sms-waiting-long", "mail-waiting-long", "concurrency")
    rings = [alarm_named(otherwise, f"mailroom-dev-{name}")["Threshold"] for name in names]
    assert rings == [180, 1_020, 2_400]
