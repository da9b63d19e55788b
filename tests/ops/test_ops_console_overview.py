"""The overview: how fast messages go out, what asks for somebody, the last 24 hours, and the channels."""

import time
from pathlib import Path
from typing import Any

import pytest

from mailroom.campaigns.runs import Runs
from mailroom.clock import iso
from mailroom_ops.console.pages import overview
from mailroom_ops.console.traffic import HOUR, Traffic
from mailroom_ops.doctor.checks import queues
from mailroom_ops.doctor.examined_stage import ExaminedStage
from mailroom_stacks.settings.load import load
from tests.support.ops.campaign import NOW, RUNS, make_runs
from tests.support.ops.console import Browser
from tests.support.ops.repair import RepairStage, repair_stage
from tests.support.ops.search import index
from tests.support.ops.whole import whole_stage
from tests.support.stacks.refusals import with_settings

STAGE = repair_stage
TTL = 9_999_999_999
ROUTES = {
    "mail": {"normal": "https://sqs/1/mailroom-dev-mail", "bulk": "https://sqs/1/mailroom-dev-mail-bulk"},
    "fax": {"normal": "https://sqs/1/mailroom-dev-fax.fifo"},
}
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
    assert (figures.count("mail", "accepted"), figures.count("mail", "wrong")) == (112, 3)


def test_the_pace_is_that_of_the_best_of_the_last_minutes_and_not_a_mean_over_ten() -> None:
    sent = {("Sent", "send-mail-bulk", "Sum"): {60: 1_500.0, 120: 1_800.0, 600: 60.0}}
    assert traffic(of=sent).pace("mail") == 30
    assert traffic(of={("Sent", "send-mail-bulk", "Sum"): {600: 1_800.0}}).pace("mail") == 0


def test_the_age_is_that_of_the_oldest_message_of_all_lanes_in_the_newest_period() -> None:
    age = "ApproximateAgeOfOldestMessage"
    figures = traffic(
        of={
            (age, "mailroom-dev-mail", "Maximum"): {60: 5, 120: 9_000},
            (age, "mailroom-dev-mail-bulk", "Maximum"): {60: 7_200},
        }
    )
    assert (figures.newest("mail", "age"), figures.newest("fax", "age")) == (7_200, None)


def test_percentiles_are_queried_for_normal_lanes_only_and_each_metric_once() -> None:
    cloud = Cloud({("PutToAccepted", "send-mail", "p99"): {30: 1_100}})
    figures = Traffic(cloud, "dev", ROUTES, NOW)  # type: ignore[arg-type]
    stats = [query["MetricStat"] for query in cloud.asked]
    took = [stat["Metric"]["Dimensions"][0]["Value"] for stat in stats if stat["Stat"] == "p99"]
    assert (took, figures.newest("mail", "p99")) == (["send-mail", "send-fax"], 1_100)
    assert len({str(stat) for stat in stats}) == len(stats) == 15


def test_the_overview_has_a_row_for_each_channel_and_counts_dead_letters(
    stage: RepairStage, browser: Browser
) -> None:
    for queue, count in (("mail", 2), ("mail-bulk", 1), ("mail-dlq", 1)):
        for _ in range(count):
            stage.sqs.send_message(QueueUrl=stage.urls[queue], MessageBody="{}")
    sending: dict[str, Any] = {
        "status": "sending",
        "to": "ada@example.com",
        "dead_lettered_at": 2,
        "ttl": TTL,
    }
    for put_at, words in ((1, "an older cause"), (2, "Sending is paused")):
        trouble = {"code": "misconfigured", "message": words}
        stage.know(f"d-{put_at}", **sending, trouble=trouble, putAt=put_at)
    index(stage.dynamodb)
    page = browser.get("/")
    assert page.status == 200
    assert "1 dead letter by mail The newest: Sending is paused See why" in page.words
    assert '<a class="button" id="dead-mail" href="/dead-letters">' in page.text
    assert "mail 3 0 1" in page.words
    link = '<a id="waiting-mail" href="/messages?event_type=mail&amp;status=sending">3 wait</a>'
    assert link in page.text
    assert "CloudWatch has no figures yet" in page.words
    assert 'hx-trigger="every 5s"' in page.text


def test_the_counts_of_accepted_and_failed_messages_link_to_their_lists(
    stage: RepairStage, browser: Browser
) -> None:
    of_stage = {"Name": "stage", "Value": "dev"}
    for name, of, value in (
        ("Sent", {"Name": "service", "Value": "send-mail"}, 600),
        ("Failed", {"Name": "channel", "Value": "mail"}, 4),
    ):
        metric = {"MetricName": name, "Dimensions": [of_stage, of], "Value": value, "Timestamp": time.time()}
        stage.session.client("cloudwatch").put_metric_data(Namespace="Mailroom", MetricData=[metric])
    page = browser.get("/")
    assert '<a id="accepted" href="/messages"><b>600</b>' in page.text
    assert '<a id="wrong" href="/failures?since=24h"><b>4</b>' in page.text
    assert '<a id="wrong-mail" href="/failures?since=24h&amp;event_type=mail">4</a>' in page.text
    assert 'aria-label="600 accepted and 4 wrong in 24 hours, 604 in the hour with the most"' in page.text
    assert "Mail is sent at 10" in page.words  # 600 in a minute


def test_rates_of_the_newest_mails_are_shown_beside_the_limits_of_ses(
    stage: RepairStage, browser: Browser
) -> None:
    for at in range(10):
        status = "bounced" if at == 0 else "delivered"
        stage.know(f"m-{at}", status=status, to="ada@example.com", putAt=at + 1, ttl=TTL)
    stage.know("s", "sms", status="bounced", to="+16175551234", putAt=1, ttl=TTL)
    for at in range(400):
        stage.know(f"w-{at}", status="scheduled", to="ada@example.com", putAt=at + 99, ttl=TTL)
    index(stage.dynamodb)
    page = browser.get("/")
    assert "90.0% delivered" in page.words
    assert "10.0% bounced SES reviews at 5.0%" in page.words
    assert "0.0% complaints SES reviews at 0.10%" in page.words
    assert "The newest 10 mails" in page.words
    assert (
        'id="rate-bounced" href="/messages?event_type=mail&amp;status=bounced" class="bad-text"' in page.text
    )
    assert "10.0% of the newest 10 mails SES reviews the account from 5.0% on" in page.words


def test_an_outage_is_the_headline_and_doctor_reports_the_same_sentence(
    stage: RepairStage, browser: Browser
) -> None:
    outage = {"code": "no_outcome", "message": "SES did not answer: ReadTimeoutError"}
    throttled = {"code": "retry", "message": "too many requests"}
    sending: dict[str, Any] = {"status": "sending", "to": "a@example.com", "ttl": TTL}
    for at in range(10):
        stage.know(f"o-{at}", **sending, trouble=outage, putAt=(at + 1) * 60_000)
    for at in range(9):
        stage.know(f"t-{at}", **sending, trouble=throttled, putAt=at + 1)
    for at in range(10):  # these are tried again at once, and no provider has refused them
        stage.know(f"n-{at}", **sending, trouble={"code": "no_time", "message": "too short"}, putAt=at + 1)
    stage.know("t-dead", **sending, trouble=throttled, putAt=1, dead_lettered_at=2)
    index(stage.dynamodb)
    sentence = (
        "mail: SES did not answer: ReadTimeoutError. 10 of the newest 30 messages have this trouble; the "
        "first was put on 1970-01-01 00:01"
    )
    words = browser.get("/").words
    assert "Mail does not get through: SES did not answer: ReadTimeoutError." in words
    assert sentence in words
    assert not [each for each in ("too many requests", "too short") if each in words]
    (finding,) = queues.outages(ExaminedStage(stage.session, "dev"))
    assert (finding.state, sentence in finding.sentence) == ("failed", True)


def test_a_used_up_day_shows_its_end_and_the_number_of_waiting_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with whole_stage(tmp_path, monkeypatch) as (stage, browser):
        stage.close_the_day()
        words = browser.get("/").words
    assert "The daily limit of mail is used up for bulk until about 2026-11-" in words
    assert "1 message waits, and is sent then automatically. See them" in words


def test_the_overview_counts_the_messages_that_may_have_arrived_twice_and_links_to_them(
    stage: RepairStage, browser: Browser
) -> None:
    tries = {"1000 ", "2000 "}
    stage.know("a", status="delivered", to="a@example.com", unsettled_tries=tries, putAt=1, ttl=TTL)
    stage.know("b", status="delivered", to="a@example.com", putAt=1, ttl=TTL)
    index(stage.dynamodb)
    page = browser.get("/")
    assert "1 of the newest messages may have arrived twice" in page.words
    assert '<a class="button" id="twice" href="/messages?twice=yes">' in page.text
    listed = browser.get("/messages", twice="yes").text
    assert ("id=a&amp;" in listed, "id=b&amp;" in listed) == (True, False)
    assert "May have arrived twice True" in browser.get("/message", id="a", channel="mail").words


def test_a_ringing_alarm_is_shown_as_a_sentence_with_its_next_command(
    stage: RepairStage, browser: Browser
) -> None:
    cloudwatch = stage.session.client("cloudwatch")
    cloudwatch.put_metric_alarm(
        AlarmName="mailroom-dev-mail-dlq-not-empty",
        AlarmDescription="It is bad. Next: mailroom doctor --stage dev, then look. See docs/alarms/x.md.",
        MetricName="x",
        Namespace="AWS/SQS",
        Period=60,
        EvaluationPeriods=1,
        Threshold=0,
        ComparisonOperator="GreaterThanThreshold",
        Statistic="Sum",
    )
    cloudwatch.set_alarm_state(
        AlarmName="mailroom-dev-mail-dlq-not-empty", StateValue="ALARM", StateReason="test"
    )
    page = browser.get("/")
    assert "Alarm mail-dlq-not-empty since" in page.words
    assert 'data-copy="mailroom doctor --stage dev"' in page.text
    assert "See docs/alarms/x.md." in page.words


def test_a_paused_run_is_listed_with_its_reason(
    stage: RepairStage, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load(with_settings({"campaigns.enabled": ["spring", "weekly"]}), "dev")
    monkeypatch.setattr(overview, "settings_or_trouble", lambda _: settings)
    make_runs(stage.dynamodb)
    runs = Runs(stage.dynamodb, RUNS, clock=lambda: NOW)
    for name in ("first", "second"):
        assert runs.begin("spring", name, "s-1", "2026-11-21T09:00:00Z")
    assert runs.pause("spring", "first", "since noon by the run itself: 6% bounced")
    page = browser.get("/")
    assert "Run first of spring Paused since noon by the run itself: 6% bounced See its results" in page.words
    assert "Run second" not in page.words


def test_a_quiet_stage_lists_no_work(stage: RepairStage, browser: Browser) -> None:
    words = browser.get("/").words
    assert "Nothing: no alarm rings, there is no dead letter, and nothing is paused." in words
    assert "No message waits, and none is being sent." in words
