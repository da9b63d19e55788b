"""Alarms of the latency objective, of what AWS drops, and AWS's own events about its services."""

from tests.support.stacks.alarm import alarm, alarms
from tests.support.stacks.dashboard import widgets
from tests.support.stacks.templates import Templates


def test_an_objective_watches_the_p99_of_each_normal_lane_in_a_short_and_in_a_long_window(
    whole: Templates,
) -> None:
    late = {each.name: each.properties for each in alarms(whole) if "codes-late" in each.name}
    windows = {
        name.removeprefix("mailroom-dev-"): (rings["DatapointsToAlarm"], rings["EvaluationPeriods"])
        for name, rings in late.items()
    }
    assert windows == {
        f"{queue}-codes-late{end}": window
        for queue in ("mail", "sms")
        for end, window in (("", (3, 3)), ("-warning", (12, 72)))
    }
    for rings in late.values():
        assert (rings["MetricName"], rings["ExtendedStatistic"]) == ("PutToAccepted", "p99")
        assert (rings["Threshold"], rings["Period"]) == (5_000, 300)


def test_the_line_of_slow_codes_is_at_the_objective(whole: Templates) -> None:
    (codes,) = (each for each in widgets(whole, "metric") if "Codes" in each["properties"]["title"])
    (line,) = codes["properties"]["annotations"]["horizontal"]
    assert line["value"] == alarm(whole, "mailroom-dev-mail-codes-late")["Threshold"]


def test_one_alarm_rings_for_each_thing_that_aws_drops_without_an_error(dev: Templates) -> None:
    (drops,) = (each for each in alarms(dev) if each.name == "mailroom-dev-aws-drops")
    assert drops.metrics() == {
        ("AWS/Lambda", "RecursiveInvocationsDropped", ()),
        ("AWS/Events", "FailedInvocations", (("RuleName", "mailroom-dev-dead-letters-schedule"),)),
        ("AWS/SNS", "NumberOfNotificationsFailed", (("TopicName", "mailroom-dev-feedback"),)),
        ("AWS/SNS", "NumberOfNotificationsFailed", (("TopicName", "mailroom-dev-alarms"),)),
    }
    (total,) = (each for each in drops.properties["Metrics"] if "Expression" in each)
    # A sum by `+` has no value if one of its metrics has none.
    assert total["Expression"] == "SUM([loops, passes, events, notices])"
    assert (drops.properties["Threshold"], drops.properties["EvaluationPeriods"]) == (1, 1)


def test_the_names_in_the_alarm_of_drops_are_those_of_the_stage(dev: Templates) -> None:
    rules = {each["Name"] for each in dev["dead-letters"].all("Events::Rule")}
    assert "mailroom-dev-dead-letters-schedule" in rules
    assert dev["feedback"].one("SNS::Topic", TopicName="mailroom-dev-feedback")
