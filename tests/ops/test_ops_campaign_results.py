"""A campaign's results: at the command line, and in the console with a start and a stop."""

import csv
import html
import json
import re
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest

from mailroom.aws.dynamo_values import image_of
from mailroom.campaigns.audience import Fault
from mailroom.campaigns.runs import PageClaim
from mailroom.clock import iso
from mailroom.ledger.items import FAILURE_KEYS
from mailroom_ops.campaigns.results import Results
from mailroom_ops.console.pages.campaign_acts import StartJob
from mailroom_ops.messages.failed_messages import Failure
from mailroom_ops.messages.failures_csv import csv_lines
from tests.support.campaign_start import start_in
from tests.support.ops.campaign import NOW, RUN, CampaignStage, answer_with_two, run
from tests.support.ops.console import Browser, Reply
from tests.support.ops.shared import failure, make_table

ENDED = {"sent": 2, "delivered": 30, "bounced": 3, "complained": 1, "failed": 2, "suppressed": 2}


def results_of_run(world: CampaignStage) -> dict[str, Any]:
    answer = json.loads(run("campaign", "status", "weekly", "--json").stdout)
    found: dict[str, Any] = answer["runs"][0]["results"]
    return found


def test_campaign_status_shows_the_outcomes_of_a_run_with_rates_beside_the_limits_of_ses(
    world: CampaignStage,
) -> None:
    world.collected(recipients=42, composed=40, opted_out=1)
    world.counted(opted_out=3, **ENDED)
    assert results_of_run(world) == {
        "put": 40,
        "under_way": 1,
        "waiting": 0,
        "undelivered": 0,
        "cancelled": 0,
        "opted_out_since": 3,
        **ENDED,
    }
    shown = " ".join(run("campaign", "status", "weekly").stdout.split())
    for said in (
        "under way 1 without an outcome yet",
        "accepted 36 by the provider",
        "delivered 31 86.1%",
        "bounced 3 8.3%; SES reviews at 5.0%",
        "complained 1 2.8%; SES reviews at 0.10%",
        "opted out since 3 of the topic",
    ):
        assert said in shown


def test_the_status_of_a_run_counts_waiting_messages_and_a_stop_counts_those_to_be_cancelled(
    world: CampaignStage,
) -> None:
    world.collected(recipients=40, composed=40)
    world.counted(delivered=10, scheduled=2179)
    shown = " ".join(run("campaign", "status", "weekly").stdout.split())
    assert "waiting 2,179 of these, for the daily limit, their window, their send_at or a paused run" in shown
    page = Browser(world.session).enter().get("/campaigns", campaign="weekly")
    assert "2,179 waiting" in page.words
    stopped = run("campaign", "stop", "weekly", "--run", RUN, "--why", "a wrong list", "--yes")
    told = "10 messages were sent; 30 will be cancelled in their turn."
    assert told in " ".join(stopped.stdout.split())


def test_a_stage_without_search_shows_no_outcomes_of_a_run(world: CampaignStage) -> None:
    world.collected()
    assert results_of_run(world) is None
    assert "bounced" not in run("campaign", "status", "weekly").stdout


def test_the_results_of_a_run_in_the_console_link_to_its_messages_with_an_outcome(
    world: CampaignStage,
) -> None:
    world.collected(recipients=40, composed=40)
    world.counted(opted_out=3, delivered=36, bounced=4)
    page = Browser(world.session).enter().get("/campaigns", campaign="weekly")
    for said in (
        "40 recipients",
        "36 delivered 4 went wrong",
        "36 delivered, 90.0%",
        "4 bounced, 10.0%; SES reviews at 5.0%",
        "3 opted out since",
    ):
        assert said in page.words
    assert step(page) == "Done"
    assert "campaign=weekly%232026-11-21T14%3A00Z&amp;status=bounced" in page.text
    assert "Stop …" not in page.words  # no further message can be stopped


def test_the_console_starts_a_campaign_once_after_a_dry_run(world: CampaignStage) -> None:
    answer_with_two(world)
    browser = Browser(world.session).enter()
    assert "Start …" in browser.get("/campaigns", campaign="weekly").words
    first = browser.get("/campaigns/start", campaign="weekly")
    assert "Nothing is written or sent." in first.words
    looked = browser.post("/campaigns/start", {"campaign": "weekly", "step": "look"})
    assert looked.headers["location"] == "/campaigns/start?campaign=weekly&look=1"
    browser.site.jobs[StartJob, "weekly"].wait()
    page = browser.get(looked.headers["location"])
    now = page.hidden()["run"]
    for said in (
        f"2 recipients, in run {now}",
        "1 faulty entries of the audience",
        "line 3",
        "News for Ada",
        "Start it, to 2",
    ):
        assert said in page.words
    assert world.started() == []
    started = browser.post("/campaigns/start", {**page.hidden(), "step": "start"})
    assert started.headers["location"] == "/campaigns?campaign=weekly"
    (body,) = world.started()
    assert (body["campaign"], body["run"]) == ("weekly", now)
    again = browser.post("/campaigns/start", {**page.hidden(), "step": "start"})
    assert (again.status, len(world.started())) == (400, 1)


def step(page: Reply) -> str:
    """Return the step at which the latest run is."""
    found: list[str] = re.findall(r'<li aria-current="step">([^<]*)</li>', page.text)
    return found[0]


def parts(page: Reply) -> list[tuple[str, int, int]]:
    """Return the parts of the latest run's bar: name, beginning and width."""
    (bar, *_) = re.findall(r"<svg class=.share.*?</svg>", page.text)
    found = re.findall(r'<rect class="([^"]+)" x="(\d+)" width="(\d+)"', bar)
    return [(name, int(begin), int(width)) for name, begin, width in found]


def test_the_page_of_a_run_shows_its_step_and_a_bar_that_counts_each_recipient_once(
    world: CampaignStage,
) -> None:
    world.counted(delivered=30, sent=4, bounced=1, suppressed=2)
    browser = Browser(world.session).enter()
    world.collected(recipients=50, composed=40, opted_out=2, left_out=1)
    page = browser.get("/campaigns", campaign="weekly")
    assert step(page) == "Composing"
    assert parts(page) == [
        ("delivered", 0, 30),
        ("accepted", 30, 4),
        ("wrong", 34, 1),
        ("none", 35, 3),
        ("unsent", 38, 5),
        ("without", 43, 7),
    ]
    world.runs.count("weekly", RUN, {"composed": 7})
    assert step(browser.get("/campaigns", campaign="weekly")) == "Sending"
    world.runs.stop("weekly", RUN)
    assert step(browser.get("/campaigns", campaign="weekly")) == "Sending, stopped"


@pytest.mark.parametrize(("delivered", "at"), [(49, "Sending"), (50, "Done")])
def test_a_run_that_was_started_again_is_done_if_every_recipient_has_an_outcome(
    world: CampaignStage, delivered: int, at: str
) -> None:
    world.collected(recipients=20, composed=20)
    world.runs.stop("weekly", RUN)
    world.collected(start="s-2", recipients=50, existed=20, composed=30)
    world.counted(delivered=delivered)
    assert step(Browser(world.session).enter().get("/campaigns", campaign="weekly")) == at


@pytest.mark.parametrize(("bounced", "bad"), [(49, False), (50, True)])
def test_a_bounce_rate_at_the_limit_of_ses_is_marked_as_bad(bounced: int, *, bad: bool) -> None:
    counts = {**dict.fromkeys(Results.__struct_fields__, 0), "delivered": 1000 - bounced, "bounced": bounced}
    figures = {figure.name: figure.bad for figure in Results(**counts).figures}
    assert (figures["bounced"], figures["delivered"]) == (bad, False)


@pytest.mark.parametrize(
    ("per_day", "scheduled", "outlook"),
    [
        ([], 30, "30 wait for their time."),
        (
            [["0001-01-01", 100]],
            30,
            "Sending takes until about 2026-11-23 15:15:00 UTC, as the daily quota allows. "
            "30 wait for the daily quota.",
        ),
    ],
)
def test_the_page_of_a_run_shows_when_its_sending_ends_only_if_this_can_be_computed(
    world: CampaignStage, per_day: list[list[Any]], scheduled: int, outlook: str
) -> None:
    world.limited(100, sent=90)
    world.collected(recipients=200, composed=200)
    world.counted(delivered=80, scheduled=scheduled)
    line = {"per_second": 1, "per_day": per_day, "reserve": 0.1}
    routes = {"mail": {"bulk": world.sqs.create_queue(QueueName="mailroom-dev-mail-bulk")["QueueUrl"]}}
    figures = {"LINES": json.dumps({"mail": line}), "ROUTES": json.dumps(routes)}
    variables = {**world.functions.variables, **figures}
    browser = Browser(world.session, clock=lambda: NOW).enter()
    page = browser.get("/campaigns", campaign="weekly")
    assert "Sending takes" not in page.words  # the stage does not say how fast it sends
    world.functions.variables = variables
    page = Browser(world.session, clock=lambda: NOW).enter().get("/campaigns", campaign="weekly")
    assert f"200 recipients found. {outlook}" in page.words
    world.runs.pause("weekly", RUN, "since noon")
    page = Browser(world.session, clock=lambda: NOW).enter().get("/campaigns", campaign="weekly")
    assert "Sending takes no end while the run is paused." in page.words


def test_a_run_that_waits_for_the_daily_quota_shows_when_the_wait_ends_and_counts_of_earlier_starts(
    world: CampaignStage,
) -> None:
    world.collected(
        Fault("line 3", "email", "is missing"), recipients=9_000, composed=8_000, opted_out=20, left_out=3
    )
    world.runs.stop("weekly", RUN)
    world.counted(delivered=3_000)
    world.begun(start="s-2")
    claim = world.runs.claim("weekly", RUN, "s-2", 1)
    assert isinstance(claim, PageClaim)
    world.runs.release(claim, "", until=NOW + 7_200)
    page = Browser(world.session).enter().get("/campaigns", campaign="weekly")
    assert step(page) == "Collecting, waits for the day"
    found = "0 recipients found so far by the latest of its 2 starts, 9,000 by those before"
    assert found in page.words
    assert (
        '<div class="notice warn"><p>The next page waits for the daily quota until about '
        "2026-11-21 16:00:34 UTC, and is then collected by itself.</p>" in page.text
    )
    assert page.text.count("notice bad") == 1  # the one of each page, which is hidden
    assert "By earlier starts 9,000 recipients found, 20 opted out, 3 left out, 1 faulty" in page.words
    shown = " ".join(run("campaign", "status", "weekly").stdout.split())
    assert "state waits for the day the next page is collected when the daily quota has capacity" in shown
    assert "waits until about 2026-11-21 16:00:34 UTC" in shown
    assert "before 9,000 found by earlier starts; 20 opted out, 3 left out, 1 faulty" in shown
    assert "was not collected" not in shown


def looked_at(browser: Browser, **run: str) -> Reply:
    """Return the page of a look that is over."""
    looked = browser.post("/campaigns/start", {"campaign": "weekly", "step": "look", **run})
    browser.site.jobs[StartJob, "weekly"].wait()
    return browser.get(looked.headers["location"])


def test_a_stopped_run_is_started_again_by_its_own_button(world: CampaignStage) -> None:
    answer_with_two(world)
    world.begun()
    browser = Browser(world.session).enter()
    assert "Start again …" not in browser.get("/campaigns", campaign="weekly").words
    form = {"campaign": "weekly", "run": RUN, "do": "stop", "why": "a wrong list"}
    assert browser.post("/campaigns/change", form).status == 303
    runs = browser.get("/campaigns", campaign="weekly")
    assert "Start again …" in runs.words
    assert "Start a new run …" in runs.words
    page = looked_at(browser, run=RUN)
    assert f"Start run {RUN} again, for 2" in page.words
    browser.post("/campaigns/start", {**page.hidden(), "step": "start"})
    (body,) = world.started()
    assert body["run"] == RUN


def test_the_console_pauses_a_run_with_a_reason_and_resumes_it(world: CampaignStage) -> None:
    world.begun()
    browser = Browser(world.session).enter()
    page = browser.get("/campaigns/change", campaign="weekly", run=RUN, do="pause")
    assert browser.post("/campaigns/change", {**page.hidden(), "why": "a wrong link"}).status == 303
    runs = browser.get("/campaigns", campaign="weekly")
    assert "Paused since" in runs.words
    assert f"Pause run {RUN} by moto (console): a wrong link" in runs.words
    assert step(runs) == "Collecting, paused"
    page = browser.get("/campaigns/change", campaign="weekly", run=RUN, do="resume")
    assert "a wrong link If it is resumed, its messages are sent within minutes" in page.words
    assert browser.post("/campaigns/change", page.hidden()).status == 400
    assert browser.post("/campaigns/change", {**page.hidden(), "why": "the link works"}).status == 303
    runs = browser.get("/campaigns", campaign="weekly")
    assert ("Pause …" in runs.words, "Paused since" in runs.words) == (True, False)
    assert f"Resume run {RUN} by moto (console): the link works" in runs.words


def test_the_start_of_a_run_soon_after_another_requires_the_typed_name_of_the_campaign(
    world: CampaignStage,
) -> None:
    answer_with_two(world)
    world.collected(composed=4459)
    browser = Browser(world.session, clock=lambda: NOW + 60).enter()
    page = looked_at(browser)
    assert f"Run {RUN} put 4,459 messages since" in page.words
    assert "type the name of the campaign: weekly" in page.words
    for typed in ("", "week"):
        refused = browser.post("/campaigns/start", {**page.hidden(), "step": "start", "typed": typed})
        assert (refused.status, world.started()) == (400, [])
    browser.post("/campaigns/start", {**page.hidden(), "step": "start", "typed": "weekly "})
    assert len(world.started()) == 1


def test_a_dry_run_shows_each_mail_as_its_recipient_would_see_it(world: CampaignStage) -> None:
    answer_with_two(world)
    world.write("templates/mail/weekly/body.html", "<p>News for <b>{{ first_name }}</b></p>")
    browser = Browser(world.session).enter()
    page = looked_at(browser)
    (source,) = re.findall(r'<iframe sandbox="allow-same-origin" src="([^"]+)"', page.text)
    assert "<p>News for <b>Ada</b></p>" in browser.get(html.unescape(source)).text
    assert browser.get("/campaigns/mail", campaign="weekly", id="another").text == ""


def test_a_start_without_a_dry_run_or_of_a_disabled_campaign_is_refused(world: CampaignStage) -> None:
    browser = Browser(world.session).enter()
    refused = browser.post("/campaigns/start", {"campaign": "weekly", "run": RUN, "step": "start"})
    assert "Look first, then start." in refused.words
    assert "draft is not enabled in dev" in browser.get("/campaigns/start", campaign="draft").words
    assert "Start …" not in browser.get("/campaigns", campaign="draft").words
    assert world.started() == []


def went_wrong(world: CampaignStage, id_: str, seconds_after: float, **attributes: Any) -> None:
    """The ledger has a failure, so long after the run began."""
    at = NOW + seconds_after
    item = {
        "id": id_,
        "event_type": "mail",
        "status": "bounced",
        "bounce_type": "Permanent",
        "completedAt": int(at * 1000),
        "updatedAt": iso(at),
        **failure(id_, "mail", "bounced", int(at * 1000)),
        "to": "ada@example.com",
        **start_in(id_),
        **attributes,
    }
    world.dynamodb.put_item(TableName="mailroom-dev-ledger", Item=image_of(item))


HEADER = '"to","status","reason","message","at","event_type","id"'


def make_ledger(world: CampaignStage) -> None:
    """A ledger with an index of failures."""
    make_table(world.dynamodb, "mailroom-dev-ledger", "id", "event_type", failures=FAILURE_KEYS)


def test_the_console_and_messages_list_export_the_same_csv_file_of_a_runs_failures(
    world: CampaignStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = NOW + 4 * 86_400
    monkeypatch.setattr("mailroom_ops.messages.list_command.time", SimpleNamespace(time=lambda: later))
    make_ledger(world)
    world.begun()
    world.begun("other")
    for at in range(120):
        went_wrong(world, f"weekly#{RUN}#{at:03}#x", at)
    went_wrong(world, f"weekly#{RUN}#later#x", 3 * 86_400, to="jürgen@example.com")
    went_wrong(world, "weekly#other#ada#x", 5)
    browser = Browser(world.session, clock=lambda: later).enter()
    page = browser.get("/campaigns", campaign="weekly")
    assert f'href="/failures?campaign=weekly%23{quote(RUN, safe="")}&amp;csv=1"' in page.text
    file = browser.get("/failures", campaign=f"weekly#{RUN}", csv="1")
    assert file.headers["content-type"] == "text/csv; charset=utf-8"
    assert "attachment; filename*=UTF-8''failures%20dev.csv" in file.headers["content-disposition"]
    lines = file.text.split("\r\n")
    assert lines[0] == f"\ufeff{HEADER}"
    assert lines[1].startswith('"jürgen@example.com","bounced","Permanent",')
    assert (len(lines), lines[-1]) == (1 + 121 + 1, "")
    assert "weekly#other" not in file.text
    command = ("messages", "list", "--status", "failure", "--campaign", f"weekly#{RUN}", "--csv")
    assert "\ufeff" + run(*command).stdout_bytes.decode() == file.text
    assert "ada@example.com" not in run(*command, "--mask").stdout
    assert "leave out --json" in run(*command, "--json").stderr


def test_a_csv_cell_that_a_spreadsheet_would_compute_gets_an_apostrophe_and_stays_text() -> None:
    texts = ("=1+1", "+16175551234", "-2", "@a", "\t=1", 'say "no", please', "fine")
    failures = [Failure("2026-11-21T14:00:34Z", "m", "mail", "failed", text, "code", "", 1) for text in texts]
    cells = [row[0] for row in csv.reader(csv_lines(failures))]
    guarded = ["'=1+1", "'+16175551234", "'-2", "'@a", "'\t=1"]
    assert cells == ["to", *guarded, 'say "no", please', "fine"]


def test_a_csv_download_is_answered_with_an_error_page_if_aws_refuses_a_call(world: CampaignStage) -> None:
    world.begun()  # the stage lacks a ledger
    reply = Browser(world.session).enter().get("/failures", campaign=f"weekly#{RUN}", csv="1")
    assert reply.status == 502
    assert "content-disposition" not in reply.headers
