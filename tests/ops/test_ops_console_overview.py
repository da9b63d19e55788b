"""The overview: how fast messages go out, what asks for somebody, the last 24 hours, and the channels."""

import re
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mailroom.budget import Budget
from mailroom.campaigns.runs import Runs
from mailroom.clock import iso
from mailroom_ops.messages.traffic import HOUR, Hour, Traffic
from tests.support import ROOT
from tests.support.ops.campaign import NOW
from tests.support.ops.console import Browser
from tests.support.ops.repair import RepairStage, repair_stage
from tests.support.ops.search import index
from tests.support.ops.shared import RUNS
from tests.support.ops.whole import whole_stage

STAGE = repair_stage
TTL = 9_999_999_999
ROUTES = {
    "mail": {"normal": "https://sqs/1/mailroom-dev-mail", "bulk": "https://sqs/1/mailroom-dev-mail-bulk"},
    "fax": {"normal": "https://sqs/1/mailroom-dev-fax.fifo"},
}
FALLBACK = "https://sqs/1/mailroom-dev-mail-bulk-fallback"
Named = tuple[str, str, str]
"""A metric, the value of its first dimension, and the statistic."""


class Cloud:
    """CloudWatch with some values, by seconds before NOW. It keeps what was asked."""

    def __init__(self, values: dict[Named, dict[int, float]]) -> None:
        self._values = values
        self.asked: list[dict[str, Any]] = []

    def get_metric_data(self, *, MetricDataQueries: Any, StartTime: Any, EndTime: Any) -> Any:  # noqa: N803
        results = []
        self.asked += MetricDataQueries
        for query in MetricDataQueries:
            metric, period = query["MetricStat"]["Metric"], query["MetricStat"]["Period"]
            name = (metric["MetricName"], metric["Dimensions"][0]["Value"], query["MetricStat"]["Stat"])
            found = {
                (NOW - ago) // period * period: value for ago, value in self._values.get(name, {}).items()
            }
            points = {
                at: value for at, value in found.items() if StartTime.timestamp() <= at < EndTime.timestamp()
            }
            times = [type(StartTime).fromtimestamp(at, StartTime.tzinfo) for at in points]
            results.append({"Id": query["Id"], "Timestamps": times, "Values": list(points.values())})
        return {"MetricDataResults": results}


def traffic(**values: Any) -> Traffic:
    """Return figures of CloudWatch with some values."""
    return Traffic(Cloud(values["of"]), "dev", ROUTES, NOW)  # type: ignore[arg-type]


def measured(stage: RepairStage, *metrics: tuple[str, dict[str, str], float]) -> None:
    """Let CloudWatch have values of this minute."""
    data = [
        {
            "MetricName": name,
            "Dimensions": [{"Name": key, "Value": value} for key, value in {"stage": "dev", **of}.items()],
            "Value": value,
            "Timestamp": time.time(),
        }
        for name, of, value in metrics
    ]
    stage.session.client("cloudwatch").put_metric_data(Namespace="Mailroom", MetricData=data)


def test_messages_are_counted_by_the_hour_over_all_channels_and_lanes() -> None:
    figures = traffic(
        of={
            ("Sent", "send-mail", "Sum"): {0: 5, 2 * HOUR: 7},
            ("Sent", "send-mail-bulk", "Sum"): {0: 100},
            ("Sent", "send-fax", "Sum"): {2 * HOUR: 1},
            ("Failed", "mail", "Sum"): {2 * HOUR: 3, 25 * HOUR: 9},
        }
    )
    hours = figures.hours()
    assert [(hour.accepted, hour.wrong) for hour in hours[-3:]] == [(8, 3), (0, 0), (105, 0)]
    assert (len(hours), sum(hour.all for hour in hours)) == (24, 116)
    assert hours[-1].at == iso(NOW // HOUR * HOUR)
    assert (figures.count("accepted", "mail"), figures.count("wrong", "mail")) == (112, 3)


def test_the_pace_of_a_channel_is_that_of_its_best_recent_minute() -> None:
    sent = {("Sent", "send-mail-bulk", "Sum"): {60: 1_500.0, 120: 1_800.0, 600: 60.0}}
    assert traffic(of=sent).pace("mail") == 30
    assert traffic(of={("Sent", "send-mail-bulk", "Sum"): {600: 1_800.0}}).pace("mail") == 0


def test_the_pace_of_the_lane_bulk_includes_the_second_provider_but_not_the_lane_normal() -> None:
    sent = {
        (metric, f"send-mail{lane}", "Sum"): {60: count}
        for metric, lane, count in (
            ("Sent", "", 6_000.0),
            ("Sent", "-bulk", 600.0),
            ("Sent", "-bulk-fallback", 60.0),
        )
    }
    routes = {"mail": {**ROUTES["mail"], "bulk-fallback": FALLBACK}}
    figures = Traffic(Cloud(sent), "dev", routes, NOW)  # type: ignore[arg-type]
    assert (figures.pace("mail", "bulk"), figures.pace("mail", "normal"), figures.pace("mail")) == (
        11,
        100,
        111,
    )


def test_the_age_of_a_channel_is_the_largest_of_the_newest_figures_of_its_lanes() -> None:
    age = "ApproximateAgeOfOldestMessage"
    figures = traffic(
        of={
            (age, "mailroom-dev-mail", "Maximum"): {60: 5, 120: 9_000},
            (age, "mailroom-dev-mail-bulk", "Maximum"): {60: 7_200},
        }
    )
    assert (figures.newest("mail", "age"), figures.newest("fax", "age")) == (7_200, None)


def test_the_overview_queries_percentiles_of_normal_lanes_only_and_each_metric_once() -> None:
    cloud = Cloud({("PutToAccepted", "send-mail", "p99"): {30: 1_100}})
    figures = Traffic(cloud, "dev", ROUTES, NOW)  # type: ignore[arg-type]
    stats = [query["MetricStat"] for query in cloud.asked]
    took = [stat["Metric"]["Dimensions"][0]["Value"] for stat in stats if stat["Stat"] == "p99"]
    assert (took, figures.newest("mail", "p99")) == (["send-mail", "send-fax"], 1_100)
    assert len({str(stat) for stat in stats}) == len(stats) == 21


def test_the_overview_has_a_row_for_each_channel_and_counts_dead_letters(
    stage: RepairStage, browser: Browser
) -> None:
    for queue, count in (("mail", 2), ("mail-bulk", 1), ("mail-dlq", 1)):
        for _ in range(count):
            stage.sqs.send_message(QueueUrl=stage.urls[queue], MessageBody="{}")
    page = browser.get("/")
    assert page.status == 200
    assert "1 dead letter by mail See why" in page.words
    assert '<a class="button" id="dead-mail" href="/dead-letters">' in page.text
    assert "mail 3 0 1" in page.words
    link = '<a id="waiting-mail" href="/messages?event_type=mail&amp;status=sending">3 wait</a>'
    assert link in page.text
    assert "CloudWatch has no figures yet" in page.words
    assert 'hx-trigger="every 5s"' in page.text


def test_the_counts_of_accepted_and_failed_messages_link_to_their_lists(
    stage: RepairStage, browser: Browser
) -> None:
    measured(stage, ("Sent", {"service": "send-mail"}, 600), ("Failed", {"channel": "mail"}, 4))
    page = browser.get("/")
    assert '<a id="accepted" href="/messages"><b>600</b>' in page.text
    assert '<a id="wrong" href="/failures?since=24h"><b>4</b>' in page.text
    assert '<a id="wrong-mail" href="/failures?since=24h&amp;event_type=mail">4</a>' in page.text
    assert "600 accepted 4 went wrong" in page.words
    assert "Mail is sent at 10" in page.words  # 600 in a minute


def test_the_overview_shows_the_rates_of_all_mails_of_a_day_beside_the_limits_of_ses(
    stage: RepairStage, browser: Browser
) -> None:
    measured(
        stage,
        ("Sent", {"service": "send-mail"}, 9_000),
        ("Sent", {"service": "send-mail-bulk"}, 1_000),
        ("Sent", {"service": "send-sms"}, 5_000),
        ("MailsDelivered", {"service": "feedback"}, 9_000),
        ("Failed", {"channel": "mail", "reason": "bounced"}, 970),
        ("Failed", {"channel": "mail", "reason": "complained"}, 1),
        ("Failed", {"channel": "mail"}, 971),
    )
    stage.know("newest", status="delivered", to="ada@example.com", putAt=1, ttl=TTL)
    index(stage.dynamodb)
    page = browser.get("/")
    assert "Mails of the last 24 hours 90.0% delivered" in page.words
    assert "9.7% bounced SES reviews at 5.0%" in page.words
    assert "0.01% complaints SES reviews at 0.10%" in page.words
    assert (
        'id="rate-bounced" href="/messages?event_type=mail&amp;status=bounced" class="bad-text"' in page.text
    )
    assert "9.7% of the mails of the last 24 hours SES reviews the account from 5.0% on" in page.words


def test_the_headline_names_a_channel_whose_tries_fail_and_links_to_messages_with_the_reasons(
    stage: RepairStage, browser: Browser
) -> None:
    ring(stage, "mailroom-dev-mail-bulk-tries-failing")
    trouble = {"code": "retry", "message": "SES: Too Many Requests"}
    stage.know("m", status="sending", to="ada@example.com", trouble=trouble, putAt=1, ttl=TTL)
    index(stage.dynamodb)
    page = browser.get("/")
    assert "Mail does not get through: most tries fail." in page.words
    assert "Outage An endpoint fails. mail-bulk-tries-failing, since" in page.words
    assert 'id="outage-mail" href="/messages?event_type=mail&amp;status=sending"' in page.text
    words = browser.get("/messages", event_type="mail", status="sending").words
    assert "ada@example.com m SES: Too Many Requests sending" in words


def test_the_overview_shows_when_a_used_up_daily_limit_ends_and_since_when_messages_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with whole_stage(tmp_path, monkeypatch) as (stage, browser):
        stage.close_the_day()
        words = browser.get("/").words
        assert "Further ones are sent then automatically. See them" in words
        Budget(stage.dynamodb, "budgets", "mail", []).join(NOW - 60)
        browser.site._kept.clear()
        words = browser.get("/").words
    assert "The daily limit of mail is used up for bulk until about 2026-11-" in words
    since = "Messages put after 2026-11-21 13:59:33 UTC wait, and are sent then automatically. See them"
    assert since in words


def test_the_overview_counts_the_repeated_submits_of_a_day_and_links_to_the_messages(
    stage: RepairStage, browser: Browser
) -> None:
    measured(stage, ("Resent", {"service": "send-mail"}, 3))
    tries = {"1000 ", "2000 "}
    stage.know("a", status="delivered", to="a@example.com", unsettled_tries=tries, putAt=1, ttl=TTL)
    stage.know("b", status="delivered", to="a@example.com", putAt=1, ttl=TTL)
    index(stage.dynamodb)
    page = browser.get("/")
    assert "3 messages were sent again in 24 hours, and may have arrived twice" in page.words
    assert '<a class="button" id="twice" href="/messages?twice=yes">' in page.text
    listed = browser.get("/messages", twice="yes").text
    assert ("id=a&amp;" in listed, "id=b&amp;" in listed) == (True, False)
    assert "May have arrived twice True" in browser.get("/message", id="a", channel="mail").words


def ring(stage: RepairStage, name: str) -> None:
    """Let an alarm ring."""
    cloudwatch = stage.session.client("cloudwatch")
    cloudwatch.put_metric_alarm(
        AlarmName=name,
        AlarmDescription="An endpoint fails. Next: look at x. See `mailroom docs webhooks-failing`.",
        MetricName="x",
        Namespace="AWS/SQS",
        Period=60,
        EvaluationPeriods=1,
        Threshold=0,
        ComparisonOperator="GreaterThanThreshold",
        Statistic="Sum",
    )
    cloudwatch.set_alarm_state(AlarmName=name, StateValue="ALARM", StateReason="test")


def test_the_overview_shows_a_ringing_alarm_as_a_sentence_with_a_link_to_its_runbook(
    stage: RepairStage, browser: Browser
) -> None:
    ring(stage, "mailroom-dev-webhooks-failing")
    page = browser.get("/")
    (row,) = re.findall("<li><span class=.status alarm.>.*?</li>", page.text, re.DOTALL)
    words = " ".join(re.sub("<[^>]*>", " ", row).split())
    assert words.partition(", since")[0] == "Alarm An endpoint fails. webhooks-failing"
    assert words.endswith("UTC What to do")
    (link,) = re.findall('href="([^"]*)"', row)
    runbook = browser.get(link)
    assert "What it means Callbacks or webhook messages failed" in runbook.words
    assert "mailroom messages show order-42 --stage dev" in runbook.words


@pytest.mark.parametrize("page", [path.stem for path in sorted((ROOT / "docs/alarms").glob("*.md"))])
def test_the_console_shows_the_runbook_of_each_alarm(browser: Browser, page: str) -> None:
    shown = browser.get("/docs", page=page)
    assert shown.status == 200
    for word in ("What it means", "First look", "Fix it"):
        assert f"<h2>{word}</h2>" in shown.text
    assert not re.search(r"\]\(|```", shown.text), "Markdown"


@pytest.mark.parametrize(
    ("p50", "p99", "colour"),
    [(900, 1_100, "good"), (1_000, 6_000, "warn"), (4_999, 9_000, "warn"), (5_000, 9_000, "bad")],
)
def test_the_overviews_headline_is_red_if_most_messages_are_accepted_late_and_amber_if_some_are(
    stage: RepairStage, browser: Browser, monkeypatch: pytest.MonkeyPatch, p50: int, p99: int, colour: str
) -> None:
    measured(stage, ("Sent", {"service": "send-mail"}, 5.0))
    newest = {("mail", "p50"): p50, ("mail", "p99"): p99}
    monkeypatch.setattr(Traffic, "newest", lambda _, *figure: newest.get(figure))
    assert f'class="panel now {colour}"' in browser.get("/").text


def test_the_overview_draws_the_hours_of_a_day_only_if_at_least_two_have_messages(
    stage: RepairStage, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    for hours, drawn in ((1, False), (2, True)):
        counts = [Hour("2026-11-21T09:00:00Z", 3 * (at < hours), 0) for at in range(24)]
        monkeypatch.setattr(Traffic, "hours", lambda _, counts=counts: counts)
        page = browser.get("/")
        assert f"{3 * hours} accepted" in page.words
        label = f'aria-label="{3 * hours} accepted and 0 wrong in 24 hours, 3 in the hour with the most"'
        assert (label in page.text) == drawn


def test_the_newest_paused_runs_are_listed_with_their_reasons_until_they_are_resumed_or_stopped(
    stage: RepairStage, browser: Browser
) -> None:
    for minute in range(13):
        runs = Runs(stage.dynamodb, RUNS, clock=partial(float, NOW + 60 * minute))
        assert runs.begin("spring", f"r-{minute:02}", "s-1", "2026-11-21T09:00:00Z")
        assert minute == 0 or runs.pause(
            "spring", f"r-{minute:02}", f"since {minute} by the run itself: 6% bounced"
        )
    words = browser.get("/").words
    assert "Run r-12 of spring Paused since 12 by the run itself: 6% bounced See its results" in words
    assert "2 further runs See the campaigns" in words
    assert ("Run r-03 " in words, "Run r-02 " in words, "Run r-00 " in words) == (True, False, False)
    assert runs.resume("spring", "r-12", "since now")
    assert runs.stop("spring", "r-11")
    browser.site._kept.clear()
    words = browser.get("/").words
    assert ("r-12" in words, "r-11" in words, "r-10" in words, "further runs" in words) == (
        False,
        False,
        True,
        False,
    )


def test_the_overview_of_a_quiet_stage_states_that_there_is_nothing_to_do(
    stage: RepairStage, browser: Browser
) -> None:
    words = browser.get("/").words
    assert "Nothing: no alarm rings, there is no dead letter, and nothing is paused." in words
    assert "No message waits, and none is being sent." in words
