"""The dashboards show whatever the templates have, and CloudWatch can show the dashboards."""

import itertools
import json
import re
from typing import Any

import pytest

from tests.support import ROOT
from tests.support.stacks.alarm import Alarm, alarms
from tests.support.stacks.dashboard import (
    arns,
    bodies,
    expressions,
    graph_lines,
    metrics,
    metrics_of_graph,
    name_of_stage,
    thresholds,
    values_on_dashboard,
    widgets,
)
from tests.support.stacks.picture import pictures
from tests.support.stacks.templates import Templates

DEPTH = "ApproximateNumberOfMessages"
COLUMNS, ROWS_OF_A_SCREEN = 24, 15
MOST_BYTES = 30_000
"""Bytes of a dashboard. The most that CloudWatch takes is not documented."""
LIMITS = {"slow: 5 s", "the alarm rings"}
"""Lines that do not show the threshold of an alarm."""
OF_AWS = {
    "AWS/Lambda": {
        *("Errors", "ConcurrentExecutions"),
        *("ClaimedAccountConcurrency", "IteratorAge"),
    },
    "AWS/SQS": {f"{DEPTH}Visible", f"{DEPTH}NotVisible", "ApproximateAgeOfOldestMessage"},
    "AWS/SES": {"Reputation.BounceRate", "Reputation.ComplaintRate"},
}
"""Metrics as AWS documents them: "Types of metrics for Lambda functions", "Available CloudWatch metrics for
Amazon SQS", "Monitoring your Amazon SES sending activity"."""


@pytest.fixture(params=["dev", "prod", "whole", "by_resend", "everything", "two_providers"])
def any_stage(request: pytest.FixtureRequest) -> Templates:
    """Stages with and without campaigns, SES and a VPC."""
    templates: Templates = request.getfixturevalue(request.param)
    return templates


def test_the_dashboard_fits_one_screen(any_stage: Templates) -> None:
    first = bodies(any_stage)[0]["widgets"]
    assert max(each["y"] + each["height"] for each in first) == ROWS_OF_A_SCREEN
    for top in {each["y"] for each in first}:
        assert sum(each["width"] for each in first if each["y"] == top) == COLUMNS


def test_the_widgets_of_the_dashboard_do_not_overlap(any_stage: Templates) -> None:
    for body in bodies(any_stage):
        taken: set[tuple[int, int]] = set()
        for each in body["widgets"]:
            columns = range(each["x"], each["x"] + each["width"])
            assert columns.stop <= COLUMNS
            cells = set(itertools.product(columns, range(each["y"], each["y"] + each["height"])))
            assert not cells & taken
            taken |= cells


def test_the_first_row_of_the_dashboard_lists_every_alarm_and_shows_the_ringing_ones(
    any_stage: Templates,
) -> None:
    ringing = [each for each in widgets(any_stage, "alarm") if "states" in each["properties"]]
    assert {(each["y"], *each["properties"]["states"]) for each in ringing} == {(0, "ALARM")}
    found = [arn.rpartition(":")[2] for each in ringing for arn in each["properties"]["alarms"]]
    assert sorted(found) == sorted(each.name for each in alarms(any_stage))
    assert all(len(each["properties"]["alarms"]) <= 100 for each in ringing)


def test_the_dashboard_refers_to_each_alarm_in_the_region_and_account_of_the_stage(
    any_stage: Templates,
) -> None:
    found = [arn for each in widgets(any_stage) for arn in arns(each, whole=True)]
    assert found
    assert all(arn.startswith("arn:aws:cloudwatch:eu-central-1:111122223333:alarm:") for arn in found)
    assert "Fn::ImportValue" not in json.dumps(any_stage["monitoring"].body)


def test_an_alarms_threshold_is_drawn_beside_its_metric(any_stage: Templates) -> None:
    lines_of_alarms = 0
    for widget in widgets(any_stage, "metric"):
        for label, value in thresholds(widget):
            if label in LIMITS or " per_day: " in label:
                continue
            kind, _, threshold = label.rpartition(": ")
            assert float(threshold.replace(",", "")) == pytest.approx(value)
            lines_of_alarms += 1
            ringing = [each for each in alarms(any_stage) if _is(each, kind)]
            assert {each.properties["Threshold"] for each in ringing} == {value}
            assert all(_drawn(each, widget) for each in ringing), kind
    assert lines_of_alarms


def _is(alarm: Alarm, kind: str) -> bool:
    return alarm.name.endswith(f"-{kind}")


def _drawn(alarm: Alarm, widget: dict[str, Any]) -> bool:
    """Whether a widget has a metric of the alarm."""
    return bool(alarm.metrics() & metrics_of_graph(widget))


@pytest.mark.parametrize(
    ("kinds", "title"),
    [
        (["waiting-long"], "Oldest message, % of its alarm"),
        (["ses-bounce-rate", "ses-complaint-rate"], "SES: bounces and complaints, % of their alarms"),
    ],
)
def test_a_percentage_on_the_dashboard_refers_to_the_threshold_of_the_same_metrics_alarm(
    any_stage: Templates, kinds: list[str], title: str
) -> None:
    ringing = [each for each in alarms(any_stage) if any(_is(each, kind) for kind in kinds)]
    graphs = [each for each in widgets(any_stage, "metric") if each["properties"]["title"] == title]
    assert len(graphs) == bool(ringing)
    shares = set()
    for graph in graphs:
        assert thresholds(graph) == [("the alarm rings", 100)]
        rows = graph["properties"]["metrics"]
        drawn = {row[-1]["id"]: tuple(row[:-1]) for row in rows if "id" in row[-1]}
        for row in rows:
            for id_, threshold in re.findall(r"^100 \* (\w+) / ([\d.]+)$", row[-1].get("expression", "")):
                shares.add((drawn[id_], float(threshold)))
    assert shares == {
        ((namespace, name, *itertools.chain(*pairs)), each.properties["Threshold"])
        for each in ringing
        for namespace, name, pairs in each.metrics()
        if name != "Send"  # SES's alarms only ring while mails are sent
    }


def test_the_graph_of_the_oldest_messages_shows_the_three_worst_queues(any_stage: Templates) -> None:
    (graph,) = (
        widget
        for widget in widgets(any_stage, "metric")
        if widget["properties"]["title"].startswith("Oldest message")
    )
    rows = [row[-1] for row in graph["properties"]["metrics"]]
    (shown,) = (row for row in rows if row.get("visible", True))
    shares = [row["id"] for row in rows if row.get("expression", "").startswith("100 * ")]
    assert shown == {"expression": f"SORT([{', '.join(shares)}], MAX, DESC, 3)"}
    assert len(shares) > 3


def test_the_graph_of_put_to_accepted_shows_p50_and_p99_of_the_normal_lanes(dev: Templates) -> None:
    drawn = {(line[3], line[-1]["stat"]) for line in graph_lines(dev) if line[1:2] == ["PutToAccepted"]}
    assert drawn == set(itertools.product(("send-mail", "send-sms"), ("p50", "p99")))


def test_the_dashboard_shows_accepted_messages_by_sender_and_failures_by_channel(
    dev: Templates,
) -> None:
    senders = {"send-mail", "send-mail-bulk", "send-sms", "send-fax", "send-webhook"}
    assert values_on_dashboard(dev, "Mailroom", "Sent", "service") == senders
    searched = [each for each in expressions(dev) if 'MetricName="Failed"' in each]
    assert searched == [
        f"SEARCH('{{Mailroom,{dimensions},stage}} MetricName=\"Failed\" stage=\"dev\"', 'Sum', 300)"
        for dimensions in ("channel",)
    ]


def test_the_dashboard_shows_counts_of_retried_misconfigured_unknown_and_resent_tries(dev: Templates) -> None:
    (search,) = (each for each in expressions(dev) if '"Retried"' in each)
    assert re.findall(r'MetricName="(\w+)"', search) == ["Retried", "Misconfigured", "Unknown", "Resent"]


def test_the_graph_of_the_daily_limit_shows_the_sum_of_all_lanes_of_a_channel(dev: Templates) -> None:
    (day,) = (each for each in widgets(dev, "metric") if each["properties"]["title"].startswith("The day"))
    (search,) = (each for each in expressions(dev) if each.startswith("RUNNING_SUM"))
    assert re.findall(r'service="([\w-]+)"', search) == ["send-mail", "send-mail-bulk"]
    assert ("mail per_day: 200", 200) in thresholds(day)
    assert {"DayUsedUp", "WaitsForDay", "PagesWaitForDay"} <= {name for _, name, _ in metrics_of_graph(day)}


def test_the_dashboard_shows_mailrooms_metrics_of_its_own_stage_only(any_stage: Templates) -> None:
    of_stage = [dict(dimensions) for of, _, dimensions in metrics(any_stage) if of == "Mailroom"]
    assert of_stage
    assert {each["stage"] for each in of_stage} == {name_of_stage(any_stage)}
    searches = [each for each in expressions(any_stage) if "SEARCH" in each]
    assert len(searches) >= 3
    for search in searches:
        assert search.count(f' stage="{name_of_stage(any_stage)}"') == 1
        assert re.search(r"\{Mailroom,[a-z,]*stage\}", search)


def test_every_metric_on_the_dashboard_is_counted_by_mailroom_or_documented_by_aws(
    any_stage: Templates,
) -> None:
    source = "".join(file.read_text() for file in (ROOT / "lambdas").rglob("*.py"))
    searched = {name for each in expressions(any_stage) for name in re.findall(r'MetricName="(.+?)"', each)}
    counted = {name for of, name, _ in metrics(any_stage) if of == "Mailroom"} | searched
    assert {name for name in counted if f'"{name}"' not in source} == set()
    for of, name, _ in metrics(any_stage):
        assert of == "Mailroom" or name in OF_AWS[of]


def test_the_dashboards_are_within_the_limits_of_cloudwatch(any_stage: Templates) -> None:
    for body in bodies(any_stage):
        assert len(json.dumps(body)) < MOST_BYTES
        assert len(body["widgets"]) <= 500
    for each in widgets(any_stage, "metric"):
        assert len(each["properties"].get("metrics", [])) <= 500
    assert len(graph_lines(any_stage)) <= 2_500
    for formula in expressions(any_stage):
        assert len(formula) <= 1_024


def test_every_widget_is_valid_by_the_documentation_of_put_dashboard(any_stage: Templates) -> None:
    needed = {
        "alarm": {"alarms"},
        "metric": {"region"},
        "text": {"markdown"},
    }
    for body in bodies(any_stage):
        assert body.keys() == {"start", "periodOverride", "widgets"}
    for each in widgets(any_stage):
        assert each.keys() == {"type", "x", "y", "width", "height", "properties"}
        assert needed[each["type"]] <= each["properties"].keys()
    for each in widgets(any_stage, "metric"):
        assert each["properties"]["region"] == "eu-central-1"
        assert each["properties"]["view"] in ("timeSeries", "bar")
        assert "metrics" in each["properties"] or arns(each)


def test_a_formula_of_a_graph_refers_only_to_lines_of_the_same_graph(any_stage: Templates) -> None:
    for each in widgets(any_stage, "metric"):
        options = [line[-1] for line in each["properties"].get("metrics", [])]
        given = [option["id"] for option in options if "id" in option]
        assert len(given) == len(set(given))
        for option in options:
            formula = option.get("expression", "")
            if "SEARCH" not in formula:
                assert set(re.findall(r"[a-z]\w*", formula)) <= set(given)


def test_the_pictures_in_the_documentation_show_the_present_dashboards(prod: Templates) -> None:
    command = ".venv/bin/python -m tests.support.stacks.picture"
    for file, picture in pictures(prod).items():
        assert file.read_text() == picture, f"{file.name} is another dashboard; run {command}"
