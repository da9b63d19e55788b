"""Campaigns at the command line: what is started, what is said, and what is refused with what there is."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from moto import mock_aws
from typer.testing import Result

from mailroom.campaigns.audience import Fault
from mailroom.campaigns.page_claim import PageClaim
from ops.campaigns import QUIET_POLLS, Campaigns, Start
from tests.ops.campaign_support import AUDIENCE, COLLECT, NOW, RUN, World
from tests.ops.campaign_support import run as cli


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with mock_aws():
        world = World(tmp_path)
        monkeypatch.setattr("ops.campaign_files.ROOT", tmp_path)
        monkeypatch.setattr("boto3.Session", lambda: world.session)
        monkeypatch.setattr("ops.campaign_commands.Campaigns", partial(Campaigns, clock=lambda: NOW))
        yield world


def run(*arguments: str, typed: str | None = None) -> Result:
    return cli("campaign", *arguments, typed=typed)


def collected(world: World, *faults: Fault, recipients: int = 40) -> None:
    """A run whose only page was read."""
    world.begun()
    claim = world.runs.claim("weekly", RUN, "s-1", 1)
    assert isinstance(claim, PageClaim)
    world.runs.advance(claim, None, recipients, faults)
    world.runs.count("weekly", RUN, {"composed": 38, "existed": 2})


# start


def test_a_start_is_a_message_with_this_minute_as_its_run_and_an_id_of_its_own(world: World) -> None:
    result = run("start", "weekly", "--yes")
    assert result.exit_code == 0, result.output
    (body,) = world.started()
    assert len(body.pop("start")) == 36
    assert body == {"campaign": "weekly", "run": RUN, "scheduled_at": "2026-11-21T14:00:00Z"}
    assert "weekly is started, run 2026-11-21T14:00Z" in result.stderr


def test_two_starts_of_one_run_have_different_ids(world: World) -> None:
    run("start", "weekly", "--yes")
    run("start", "weekly", "--yes")
    assert len({each["start"] for each in world.started()}) == 2


def test_a_start_asks_first_and_without_a_yes_nothing_is_started(world: World) -> None:
    result = run("start", "weekly", typed="n\n")
    assert result.exit_code == 1
    assert "Start weekly in dev, run 2026-11-21T14:00Z?" in result.stderr
    assert not world.started()
    assert run("start", "weekly", typed="y\n").exit_code == 0
    assert len(world.started()) == 1


def test_a_run_that_was_begun_goes_on_with_its_own_time(world: World) -> None:
    collected(world)
    result = run("start", "weekly", "--run", RUN, typed="y\n")
    assert result.exit_code == 0
    assert f"Go on with weekly in dev, run {RUN}, which has put 38 messages?" in result.stderr
    assert "goes on" in result.stderr
    (body,) = world.started()
    assert (body["run"], body["scheduled_at"]) == (RUN, "2026-11-21T13:59:00Z")


@pytest.mark.parametrize(
    ("name", "time"),
    [("2026-11-18T13:00Z", "2026-11-18T13:00:00Z"), ("after-the-move", "2026-11-21T14:00:34Z")],
    ids=["a time", "a word"],
)
def test_a_new_run_with_a_name_has_the_time_in_it_or_else_now(world: World, name: str, time: str) -> None:
    assert run("start", "weekly", "--run", name, "--yes").exit_code == 0
    (body,) = world.started()
    assert (body["run"], body["scheduled_at"]) == (name, time)


def test_a_start_as_json_is_what_was_started(world: World) -> None:
    result = run("start", "weekly", "--yes", "--json")
    expected = {"campaign": "weekly", "run": RUN, "scheduled_at": "2026-11-21T14:00:00Z"}
    assert json.loads(result.stdout) == expected


# what there is not


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("start", "nobody", "--yes"), "There is no campaign 'nobody'; there are: draft, news, weekly."),
        (("status", "nobody"), "There is no campaign 'nobody'; there are: draft, news, weekly."),
        (("stop", "nobody", "--run", RUN), "There is no campaign 'nobody'; there are: draft, news, weekly."),
        (("start", "draft", "--yes"), "draft is not enabled in dev; there: weekly, news."),
        (("start", "weekly", "--stage", "prod", "--yes"), "weekly is not enabled in prod; there: none."),
        (
            ("start", "weekly", "--stage", "moon"),
            "There is no stage 'moon' in cdk.json; there are: dev, prod.",
        ),
        (("list", "--stage", "moon"), "There is no stage 'moon' in cdk.json; there are: dev, prod."),
        (("start", "weekly", "--run", "a run"), "run 'a run' is no name"),
        (("status", "weekly", "--run", "r-9"), "weekly has no run 'r-9' in dev; the latest: none."),
        (("stop", "weekly", "--run", "r-9"), "weekly has no run 'r-9' in dev; the latest: none."),
    ],
)
def test_what_is_not_there_exits_with_2_and_a_sentence_that_says_what_is(
    arguments: tuple[str, ...], sentence: str
) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert not result.stdout


def test_a_stage_without_campaigns_exits_with_2_and_names_the_queue(world: World) -> None:
    world.sqs.delete_queue(QueueUrl=world.sqs.get_queue_url(QueueName=COLLECT)["QueueUrl"])
    result = run("start", "weekly", "--yes")
    assert result.exit_code == 2
    assert f"There is no queue {COLLECT} in this account and region" in result.stderr


def test_settings_that_cannot_be_read_exit_with_2_and_name_the_file(world: World) -> None:
    world.write("campaigns/weekly/campaign.toml", "channel =")
    result = run("start", "weekly", "--yes")
    assert result.exit_code == 2
    assert "campaigns/weekly/campaign.toml cannot be read" in result.stderr


# status


def test_the_status_says_how_far_a_run_is_and_what_is_wrong_with_its_audience(world: World) -> None:
    collected(world, Fault("line 17", "email", "is empty; [red]give[/red] one"))
    result = run("status", "weekly")
    assert result.exit_code == 0
    words = [line.split() for line in result.stdout.splitlines()]
    assert ["state", "collected", "every", "page", "was", "read"] in words
    assert ["recipients", "40", "found"] in words
    assert words[-1][:3] == ["-", "line", "17,"]
    assert "is empty; [red]give[/red] one" in result.stdout


def test_the_status_shows_the_latest_run_and_a_line_for_each_before(world: World) -> None:
    world.begun("2026-11-14T13:00Z", "s-0")
    collected(world)
    result = run("status", "weekly")
    assert result.stdout.startswith(f"weekly, run {RUN}\n")
    assert "Before:" in result.stdout
    assert result.stdout.strip().splitlines()[-1].split()[:2] == ["2026-11-14T13:00Z", "collecting"]


def test_a_page_that_could_not_be_collected_says_why(world: World) -> None:
    world.begun()
    claim = world.runs.claim("weekly", RUN, "s-1", 1)
    assert isinstance(claim, PageClaim)
    world.runs.release(claim, "the database is gone")
    assert "Page 1 was not collected: the database is gone" in run("status", "weekly").stdout


@pytest.mark.usefixtures("world")
def test_a_campaign_without_a_run_exits_with_1() -> None:
    result = run("status", "weekly")
    assert (result.exit_code, result.stdout) == (1, "weekly has had no run in dev.\n")
    assert run("status", "weekly", "--json").stdout == "[]\n"


def test_the_status_as_json_is_the_run_without_its_workers_claim(world: World) -> None:
    collected(world)
    (found,) = json.loads(run("status", "weekly", "--run", RUN, "--json").stdout)
    assert (found["state"], found["recipients"], found["composed"]) == ("collected", 40, 38)
    assert "claim_token" not in found


# stop


def test_a_stop_asks_and_then_stops_the_run(world: World) -> None:
    world.begun()
    assert run("stop", "weekly", "--run", RUN, typed="n\n").exit_code == 1
    found = world.runs.read("weekly", RUN)
    assert found is not None
    assert found.state == "collecting"
    result = run("stop", "weekly", "--run", RUN, typed="y\n")
    assert result.exit_code == 0
    assert "Stop run 2026-11-21T14:00Z of weekly in dev" in result.stderr
    assert f"mailroom campaign start weekly --run {RUN} --stage dev" in result.stdout
    found = world.runs.read("weekly", RUN)
    assert found is not None
    assert found.state == "stopped"


def test_a_run_that_is_stopped_already_exits_with_1(world: World) -> None:
    world.begun()
    run("stop", "weekly", "--run", RUN, "--yes")
    result = run("stop", "weekly", "--run", RUN, "--yes")
    assert result.exit_code == 1
    assert "is stopped already" in result.stdout


# list


def test_the_list_has_every_campaign_with_its_schedule_its_stage_and_its_last_run(world: World) -> None:
    world.schedule("weekly")
    collected(world)
    result = run("list")
    assert result.exit_code == 0
    rows = [line.split() for line in result.stdout.splitlines() if line.strip()]
    assert rows[2:5] == [
        ["draft", "sms", "module", "by", "hand", "not", "enabled"],
        ["news", "sms", "module", "by", "hand", "enabled"],
        [
            "weekly",
            "mail",
            "csv",
            "0",
            "13",
            "?",
            "*",
            "WED",
            "*",
            "Europe/Berlin",
            "enabled",
            RUN,
            "collected",
        ],
    ]
    assert result.stdout.splitlines()[-1] == "3 campaigns, 2 of them enabled in dev."


def test_a_schedule_that_is_switched_off_or_not_deployed_is_said_to_be_so(world: World) -> None:
    assert {each["campaign"]: each["stage"] for each in listed()}["weekly"] == "not deployed"
    world.schedule("weekly", "DISABLED")
    assert {each["campaign"]: each["stage"] for each in listed()}["weekly"] == "disabled"


def listed() -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads(run("list", "--json").stdout)
    return found


# wait


def test_waiting_ends_when_the_new_start_is_collected_and_its_queues_stay_empty(world: World) -> None:
    campaigns = Campaigns(world.session, "dev", lambda: NOW)
    start = Start("weekly", RUN, "2026-11-21T14:00:00Z")
    audience = world.sqs.get_queue_url(QueueName=AUDIENCE)["QueueUrl"]
    seen: list[str] = []
    sleeps = 0

    def sleep(_seconds: float) -> None:
        nonlocal sleeps
        sleeps += 1
        match sleeps:
            case 2:
                collected(world)
            case 3:
                world.sqs.send_message(QueueUrl=audience, MessageBody="{}")
            case 9:
                world.sqs.purge_queue(QueueUrl=audience)

    done = campaigns.wait(start, lambda each: seen.append(each.state), sleep)
    assert done.state == "collected"
    assert set(seen) == {"collected"}
    assert sleeps == 9 + QUIET_POLLS - 1


def test_waiting_for_a_run_that_goes_on_is_not_ended_by_its_earlier_start(world: World) -> None:
    collected(world)
    campaigns = Campaigns(world.session, "dev", lambda: NOW)
    start = campaigns.starting("weekly", RUN)
    sleeps = 0

    def sleep(_seconds: float) -> None:
        nonlocal sleeps
        sleeps += 1
        if sleeps == 10:
            assert world.runs.begin("weekly", RUN, "s-2", start.scheduled_at)
            assert world.runs.stop("weekly", RUN)

    assert campaigns.wait(start, lambda _: None, sleep).state == "stopped"
    assert sleeps > 10


@pytest.mark.parametrize("command", ["list", "start", "status", "stop"])
def test_the_help_of_each_command_has_an_example(command: str) -> None:
    result = run(command, "--help")
    assert result.exit_code == 0
    assert f"mailroom campaign {command} " in result.stdout
