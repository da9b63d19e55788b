"""The dashboard shows whatever the templates have, and CloudWatch can show the dashboard."""

import itertools
import re
from typing import Any

import pytest

from mailroom.outcomes import UNKNOWN
from mailroom_stacks.dashboard.widgets import graph, placed, text
from tests.support import ROOT
from tests.support.stacks.alarm import alarms, functions, queues, streams
from tests.support.stacks.dashboard import body, expressions, lines, metrics, shown, widgets
from tests.support.stacks.templates import Templates

DEPTH = "ApproximateNumberOfMessages"
COLUMNS = 24


@pytest.fixture(params=["dev", "prod", "whole"])
def each_stage(request: pytest.FixtureRequest) -> Templates:
    """Each stage, and one with campaigns of every kind."""
    templates: Templates = request.getfixturevalue(request.param)
    return templates


def name_of(each_stage: Templates) -> str:
    name: str = each_stage["monitoring"].one("CloudWatch::Dashboard")["DashboardName"]
    return name.removeprefix("mailroom-")


def test_every_queue_is_shown_with_its_depth_age_flight_and_dead_letters(each_stage: Templates) -> None:
    own, dead = queues(each_stage)
    assert own == shown(each_stage, "AWS/SQS", "ApproximateAgeOfOldestMessage", "QueueName")
    assert shown(each_stage, "AWS/SQS", f"{DEPTH}Visible", "QueueName") == own | dead
    assert shown(each_stage, "AWS/SQS", f"{DEPTH}NotVisible", "QueueName") == own | dead


@pytest.mark.parametrize("metric", ["Errors", "Throttles", "Duration", "ConcurrentExecutions"])
def test_every_function_is_shown(each_stage: Templates, metric: str) -> None:
    assert shown(each_stage, "AWS/Lambda", metric, "FunctionName") == functions(each_stage)


def test_every_reader_of_a_stream_is_shown(each_stage: Templates) -> None:
    readers = set(dict(streams(each_stage)).values())
    assert shown(each_stage, "AWS/Lambda", "IteratorAge", "FunctionName") == readers
    ringing = {arn for each in widgets(each_stage, "metric") for arn in rung(each)}
    for name in readers:
        for kind in ("gave-up", "dropped"):
            assert any(arn.endswith(f":alarm:{name}-{kind}") for arn in ringing)


def rung(widget: dict[str, dict[str, dict[str, list[str]]]]) -> list[str]:
    """The alarms whose graph a widget is."""
    return widget["properties"].get("annotations", {}).get("alarms", [])


def test_every_http_api_is_shown_with_its_errors_and_its_log(each_stage: Templates) -> None:
    made = {each["Name"] for of in each_stage.stacks.values() for each in of.all("ApiGatewayV2::Api")}
    for name in made:
        assert any(f"'/aws/vendedlogs/{name}-api'" in query for query in queries(each_stage))
        assert any(
            arn.endswith(f":alarm:{name}-api-5xx")
            for each in widgets(each_stage, "metric")
            for arn in rung(each)
        )


def queries(each_stage: Templates) -> list[str]:
    return [each["properties"]["query"] for each in widgets(each_stage, "log")]


def test_a_query_reads_a_log_that_is_there(each_stage: Templates) -> None:
    groups = {each["LogGroupName"] for of in each_stage.stacks.values() for each in of.all("Logs::LogGroup")}
    sources = {found for query in queries(each_stage) for found in re.findall(r"SOURCE '([^']+)'", query)}
    assert len(sources) == 2
    assert sources <= groups


def test_every_alarm_is_shown_once_among_the_states(each_stage: Templates) -> None:
    arns = [arn for each in widgets(each_stage, "alarm") for arn in each["properties"]["alarms"]]
    names = [arn.rpartition(":")[2] for arn in arns]
    assert sorted(names) == sorted(each.name for each in alarms(each_stage))
    assert all(arn.startswith("arn:aws:cloudwatch:eu-central-1:111122223333:alarm:") for arn in arns)
    assert all(len(each["properties"]["alarms"]) <= 100 for each in widgets(each_stage, "alarm"))


def test_an_alarm_after_which_something_is_lost_stands_first(dev: Templates) -> None:
    first, second = widgets(dev, "alarm")
    kinds = {arn.rpartition(":")[2] for arn in first["properties"]["alarms"]}
    assert "mailroom-dev-mail-dlq-not-empty" in kinds
    assert "mailroom-dev-api-5xx" in kinds
    assert not any(name.endswith("-slow") for name in kinds)
    assert first["y"] < second["y"]


def test_from_top_to_bottom_it_goes_from_what_to_why(dev: Templates) -> None:
    texts = [(each["y"], each["properties"]["markdown"]) for each in widgets(dev, "text")]
    titles = [markdown.splitlines()[0] for _, markdown in sorted(texts)]
    assert titles == [
        "# Mailroom, stage dev",
        *("## Promises", "## Channels", "## Queues", "## Waits", "## Functions", "## Streams", "## Outside"),
    ]


def test_campaigns_are_shown_where_there_are_any(whole: Templates, dev: Templates) -> None:
    searched = [each for each in expressions(whole) if 'service="collect"' in each]
    assert len(searched) == 1
    assert not [each for each in expressions(dev) if "collect" in each]


def test_promises_are_summed_over_every_sender_and_channel(dev: Templates) -> None:
    senders = {"send-mail", "send-mail-bulk", "send-sms", "send-fax", "send-webhook"}
    assert shown(dev, "Mailroom", "Sent", "service") == senders
    assert shown(dev, "Mailroom", "PutToAccepted", "service") == senders
    assert shown(dev, "Mailroom", "Failed", "channel") == {"mail", "sms", "fax", "webhook", UNKNOWN}
    (sums,) = (each for each in widgets(dev, "metric") if each["properties"]["title"] == "Messages")
    hidden = [line for line in sums["properties"]["metrics"] if isinstance(line[0], str)]
    assert len(hidden) == 5 + 5
    assert all(line[-1]["visible"] is False for line in hidden)
    assert sums["properties"]["setPeriodToTimeRange"] is True


def test_percentiles_are_shown_of_each_sender(dev: Templates) -> None:
    stats = {line[-1]["stat"] for line in lines(dev) if line[1:2] == ["PutToAccepted"]}
    assert stats == {"p50", "p99"}


def test_whatever_mailroom_counts_is_looked_for_in_this_stage_alone(each_stage: Templates) -> None:
    of_stage = [dict(dimensions) for of, _, dimensions in metrics(each_stage) if of == "Mailroom"]
    assert of_stage
    assert {each["stage"] for each in of_stage} == {name_of(each_stage)}
    searches = [each for each in expressions(each_stage) if "SEARCH" in each]
    assert len(searches) >= 4
    for search in searches:
        assert f'stage="{name_of(each_stage)}"' in search
        assert re.search(r"\{Mailroom,[a-z,]*stage\}", search)


def test_failures_are_searched_for_by_the_dimensions_that_outcomes_writes(dev: Templates) -> None:
    (search,) = (each for each in expressions(dev) if 'channel="sms"' in each)
    schema, rest = "{Mailroom,channel,reason,stage}", 'MetricName="Failed" channel="sms" stage="dev"'
    assert search == f"SEARCH('{schema} {rest}', 'Sum', 300)"


def test_failures_of_a_channel_that_there_is_not_are_shown_as_well(each_stage: Templates) -> None:
    searches = [each for each in expressions(each_stage) if f'channel="{UNKNOWN}"' in each]
    assert len(searches) == 1


def test_what_is_shown_of_mailroom_is_counted_somewhere(dev: Templates) -> None:
    source = "".join(file.read_text() for file in (ROOT / "lambdas").rglob("*.py"))
    shown_names = {name for of, name, _ in metrics(dev) if of == "Mailroom"}
    assert {name for name in shown_names if f'"{name}"' not in source} == set()


def test_thresholds_are_drawn_where_alarms_ring(dev: Templates) -> None:
    drawn = {
        each["properties"]["title"]: {mark["label"]: mark["value"] for mark in across(each)}
        for each in widgets(dev, "metric")
    }
    assert drawn["fax: age of the oldest, s"] == {"waiting long": 14_400, "half of the retention": 7 * 86_400}
    assert drawn["mail: in flight"] == {"alarm": 100_000, "SQS's limit": 120_000}
    assert drawn["send-fax: duration, ms"] == {"alarm": 895_000, "time-out": 900_000}
    assert drawn["SES: bounce rate"] == {"warning": 0.02, "alarm": 0.05}
    assert drawn["release: late, ms"] == {"alarm": 300_000}
    assert drawn["dispatch: behind, ms"] == {"alarm": 300_000}
    assert drawn["The account's concurrency"] == {"alarm": 800, "quota": 1_000}
    rings = {each.name: each.properties["Threshold"] for each in alarms(dev)}
    assert drawn["send-sms: duration, ms"]["alarm"] == rings["mailroom-dev-send-sms-slow"]


def across(widget: dict[str, Any]) -> list[dict[str, Any]]:
    """The lines across a graph."""
    drawn: list[dict[str, Any]] = widget["properties"].get("annotations", {}).get("horizontal", [])
    return drawn


def test_widgets_stand_inside_the_grid_and_nowhere_on_each_other(each_stage: Templates) -> None:
    taken: set[tuple[int, int]] = set()
    for each in widgets(each_stage):
        assert each["x"] + each["width"] <= COLUMNS
        assert 1 <= each["height"] <= 1_000
        columns = range(each["x"], each["x"] + each["width"])
        cells = set(itertools.product(columns, range(each["y"], each["y"] + each["height"])))
        assert not cells & taken
        taken |= cells


def test_cloudwatch_takes_as_many_widgets_metrics_and_lines(each_stage: Templates) -> None:
    assert len(widgets(each_stage)) <= 500
    assert len(lines(each_stage)) <= 2_500
    for each in widgets(each_stage, "metric"):
        assert len(each["properties"].get("metrics", [])) <= 500
    assert len(each_stage["monitoring"].body["Resources"]) < 500


def test_widgets_are_as_put_dashboard_documents_them(each_stage: Templates) -> None:
    assert body(each_stage).keys() == {"start", "periodOverride", "widgets"}
    needed = {
        "alarm": {"alarms"},
        "log": {"query", "region"},
        "metric": {"region"},
        "text": {"markdown"},
    }
    for each in widgets(each_stage):
        assert each.keys() == {"type", "x", "y", "width", "height", "properties"}
        assert needed[each["type"]] <= each["properties"].keys()
    for each in widgets(each_stage, "metric"):
        assert each["properties"]["region"] == "eu-central-1"
        assert each["properties"]["view"] in ("timeSeries", "singleValue")
        assert "metrics" in each["properties"] or rung(each)


def test_ids_of_lines_are_what_expressions_may_name(each_stage: Templates) -> None:
    for each in widgets(each_stage, "metric"):
        given = [line[-1]["id"] for line in each["properties"].get("metrics", []) if named_line(line)]
        assert len(given) == len(set(given))
        assert all(re.fullmatch(r"[a-z][a-zA-Z0-9_]*", name) for name in given)
        for line in each["properties"].get("metrics", []):
            for wanted in re.findall(r'METRICS\("(\w+)"\)', str(line)):
                assert any(wanted in name for name in given)


def named_line(line: list[object]) -> bool:
    return isinstance(line[-1], dict) and "id" in line[-1]


def test_a_widget_that_does_not_fit_goes_below_the_highest_of_its_row() -> None:
    graphs = [graph(str(at), [], stat="Sum", width=12) for at in range(3)]
    places = [(each["x"], each["y"]) for each in placed([text("a", 2), *graphs, text("b", 1)])]
    assert places == [(0, 0), (0, 2), (12, 2), (0, 8), (0, 14)]


def test_more_widgets_than_cloudwatch_shows_are_refused() -> None:
    with pytest.raises(ValueError, match="500 widgets"):
        placed(text("a", 1) for _ in range(501))
