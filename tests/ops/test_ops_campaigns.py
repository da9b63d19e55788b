"""Campaigns at the command line: what is started, what is said, and what is refused with what there is."""

import json
import shutil
from functools import partial

import pytest
from typer.testing import Result

from mailroom.campaigns.audience import Fault
from mailroom.campaigns.runs import PageClaim
from mailroom.ledger.items import RUN_UNKNOWN
from mailroom.ledger.run_states import STOPPED, RunStates
from mailroom.message.message import CampaignStart
from mailroom_ops.campaigns.deployed import RESTART_SECONDS
from tests.support.ops.campaign import COLLECT, NOW, RUN, CampaignStage, run
from tests.support.ops.shared import RUNS

WHY = ("--why", "a wrong list")


run_campaign = partial(run, "campaign")


def state_of_run(world: CampaignStage) -> str:
    found = world.runs.read("weekly", RUN)
    assert found is not None
    return found.state


# start


def test_campaign_start_queues_a_start_with_its_own_id_and_a_run_named_by_the_current_minute(
    world: CampaignStage,
) -> None:
    result = run_campaign("start", "weekly", "--yes")
    assert result.exit_code == 0, result.output
    (body,) = world.started()
    assert len(body.pop("start")) == 36
    assert body == {
        "campaign": "weekly",
        "run": RUN,
        "scheduled_at": "2026-11-21T14:00:00Z",
    }
    assert "weekly is started, run 2026-11-21T14:00Z" in result.stdout


def test_two_starts_of_one_run_have_different_ids(world: CampaignStage) -> None:
    run_campaign("start", "weekly", "--yes")
    run_campaign("start", "weekly", "--yes")
    assert len({each["start"] for each in world.started()}) == 2


def test_the_start_of_a_campaign_requires_a_confirmation(world: CampaignStage) -> None:
    result = run_campaign("start", "weekly", typed="n\n")
    assert result.exit_code == 1
    assert "Start weekly in dev, run 2026-11-21T14:00Z?" in result.stderr
    assert not world.started()
    assert run_campaign("start", "weekly", typed="y\n").exit_code == 0
    assert len(world.started()) == 1


def test_the_question_before_the_start_of_a_campaign_shows_the_rest_of_the_daily_limit(
    world: CampaignStage,
) -> None:
    world.limited(2_000, sent=300)
    result = run_campaign("start", "weekly", typed="n\n")
    assert "? The daily limit allows 1,500 recipients now; the rest follow later." in result.stderr


def test_a_restart_of_a_run_keeps_its_scheduled_time(world: CampaignStage) -> None:
    world.collected()
    result = run_campaign("start", "weekly", "--run", RUN, typed="y\n")
    assert result.exit_code == 0
    question = f"Start weekly in dev, run {RUN} again? It has put 38 messages into the mailbox. People"
    assert question in result.stderr
    assert "weekly is started again" in result.stdout
    (body,) = world.started()
    assert (body["run"], body["scheduled_at"]) == (RUN, "2026-11-21T13:59:00Z")


@pytest.mark.parametrize(
    ("name", "time"),
    [("2026-11-18T13:00Z", "2026-11-18T13:00:00Z"), ("after-the-move", "2026-11-21T14:00:34Z")],
    ids=["a time", "a word"],
)
def test_a_new_run_gets_the_time_in_its_name_or_else_the_present_time(
    world: CampaignStage, name: str, time: str
) -> None:
    assert run_campaign("start", "weekly", "--run", name, "--new", "--yes").exit_code == 0
    (body,) = world.started()
    assert (body["run"], body["scheduled_at"]) == (name, time)


def test_a_run_can_be_started_again_only_within_the_restart_period_after_its_first_start(
    world: CampaignStage,
) -> None:
    world.begun(seconds_ago=RESTART_SECONDS)
    assert run_campaign("start", "weekly", "--run", RUN, "--yes").exit_code == 0
    world.begun("autumn", seconds_ago=RESTART_SECONDS + 1)
    days = f"{RESTART_SECONDS // 86_400} days"
    assert f"A run can be started again for {days}." in " ".join(
        run_campaign("start", "--help").stdout.split()
    )
    for dry_run in ((), ("--dry-run",)):
        result = run_campaign("start", "weekly", "--run", "autumn", "--yes", *dry_run)
        assert result.exit_code == 2
        assert f"Run autumn of weekly was first started over {days} ago" in result.stderr
    assert [each["run"] for each in world.started()] == [RUN]


def test_the_start_of_an_unknown_run_is_refused_with_the_names_of_the_latest_runs(
    world: CampaignStage,
) -> None:
    world.begun()
    result = run_campaign("start", "weekly", "--run", "2026-11-21T13:00Z", "--yes")
    assert result.exit_code == 2
    assert (
        f"There is no run of that name; the latest runs of weekly in dev: {RUN}. Use --new to start one."
        in result.stderr
    )
    assert not world.started()


def test_an_existing_run_is_continued_despite_the_option_new(world: CampaignStage) -> None:
    world.begun()
    assert run_campaign("start", "weekly", "--run", RUN, "--new", "--yes").exit_code == 0
    assert world.started()[0]["scheduled_at"] == "2026-11-21T13:59:00Z"


def test_the_json_of_a_start_contains_the_campaign_the_run_and_its_time(world: CampaignStage) -> None:
    result = run_campaign("start", "weekly", "--yes", "--json")
    expected = {"campaign": "weekly", "run": RUN, "scheduled_at": "2026-11-21T14:00:00Z"}
    assert json.loads(result.stdout) == expected


# A missing resource.


NONE = "There is no campaign 'nobody'; there are: draft, news, weekly."
MISSING: list[tuple[tuple[str, ...], str]] = [
    (("start", "nobody", "--yes"), NONE),
    (("status", "nobody"), NONE),
    (("stop", "nobody", "--run", RUN, *WHY), f"nobody has no run '{RUN}' in dev; its latest: none."),
    (("pause", "nobody", "--run", RUN, "--why", "?"), f"nobody has no run '{RUN}' in dev; its latest: none."),
    (("start", "draft", "--yes"), "draft is not enabled in dev; enabled are: weekly, news."),
    (("start", "weekly", "--stage", "prod", "--yes"), "weekly is not enabled in prod; enabled are: none."),
    (("start", "weekly", "--stage", "moon"), "There is no stage 'moon' in cdk.json; there are: dev, prod."),
    (("start", "weekly", "--run", "a run"), "run 'a run' is not a valid name"),
    (("status", "weekly", "--run", "r-9"), "weekly has no run 'r-9' in dev; its latest: none."),
    (("stop", "weekly", "--run", "r-9", *WHY), "weekly has no run 'r-9' in dev; its latest: none."),
]


@pytest.mark.usefixtures("world")
def test_a_campaign_command_with_an_unknown_campaign_run_or_stage_exits_with_2_and_says_which_exist() -> None:
    for arguments, sentence in MISSING:
        result = run_campaign(*arguments)
        assert (result.exit_code, sentence in result.stderr, result.stdout) == (2, True, ""), arguments


def test_campaign_start_exits_with_2_in_a_stage_without_campaigns_and_names_the_missing_queue(
    world: CampaignStage,
) -> None:
    world.sqs.delete_queue(QueueUrl=world.sqs.get_queue_url(QueueName=COLLECT)["QueueUrl"])
    result = run_campaign("start", "weekly", "--yes")
    assert result.exit_code == 2
    assert f"There is no queue {COLLECT} in this account and region" in result.stderr


@pytest.mark.parametrize("arguments", [("start", "--yes"), ("status",), ("stop", "--run", RUN, *WHY)])
def test_a_campaign_command_without_the_table_of_runs_exits_with_2_and_names_it(
    world: CampaignStage, arguments: tuple[str, ...]
) -> None:
    world.dynamodb.delete_table(TableName=RUNS)
    command, *options = arguments
    result = run_campaign(command, "weekly", *options)
    assert result.exit_code == 2
    assert f"There is no table {RUNS} in this account and region. Deploy dev" in result.stderr


def test_campaign_start_exits_with_2_for_an_invalid_campaign_file_and_names_the_file(
    world: CampaignStage,
) -> None:
    world.write("campaigns/weekly/campaign.toml", "channel =")
    result = run_campaign("start", "weekly", "--yes")
    assert result.exit_code == 2
    assert "campaigns/weekly/campaign.toml cannot be read" in result.stderr


# status


def test_campaign_status_shows_the_progress_of_a_run_and_the_faults_of_its_audience(
    world: CampaignStage,
) -> None:
    world.collected(Fault("line 17", "email", "is empty; [red]give[/red] one"))
    result = run_campaign("status", "weekly")
    assert result.exit_code == 0
    words = [line.split() for line in result.stdout.splitlines()]
    assert ["state", "collected", "every", "page", "was", "read"] in words
    assert ["recipients", "40", "found"] in words
    assert words[-1][:3] == ["-", "line", "17,"]
    assert "is empty; [red]give[/red] one" in result.stdout


def test_campaign_status_counts_messages_that_were_not_put_because_another_message_has_their_id(
    world: CampaignStage,
) -> None:
    world.collected(recipients=40, composed=38, conflicts=2)
    words = " ".join(run_campaign("status", "weekly").stdout.split())
    assert "conflicts 2 were not put, because another message has their id" in words
    (answer,) = json.loads(run_campaign("status", "weekly", "--json").stdout)["runs"]
    assert answer["conflicts"] == 2
    world.begun(start="s-2")
    assert "conflicts" not in run_campaign("status", "weekly").stdout


def test_campaign_status_shows_the_latest_run_and_a_line_for_each_earlier_run(world: CampaignStage) -> None:
    world.collected()
    world.begun("nov", "s-0", seconds_ago=60)
    world.begun("2026-12-24T13:00Z", "s-1", seconds_ago=120)
    result = run_campaign("status", "weekly")
    assert result.stdout.startswith(f"weekly, run {RUN}\n")
    assert "Earlier runs:" in result.stdout
    rows = [line.split()[:2] for line in result.stdout.strip().splitlines()[-2:]]
    assert rows == [["nov", "collecting"], ["2026-12-24T13:00Z", "collecting"]]


def test_campaign_status_shows_the_reason_why_a_page_of_the_audience_was_not_collected(
    world: CampaignStage,
) -> None:
    world.begun()
    claim = world.runs.claim("weekly", RUN, "s-1", 1)
    assert isinstance(claim, PageClaim)
    world.runs.release(claim, "the database is gone")
    assert "Page 1 was not collected: the database is gone" in run_campaign("status", "weekly").stdout


def test_campaign_status_shows_the_reason_why_a_run_has_stopped_itself(world: CampaignStage) -> None:
    world.begun()
    world.runs.stop("weekly", RUN, trouble="each of its first 54 messages has failed")
    shown = run_campaign("status", "weekly").stdout
    assert "each of its first 54 messages has failed" in shown
    assert "was not collected" not in shown


@pytest.mark.usefixtures("world")
def test_campaign_status_exits_with_1_for_a_campaign_without_a_run() -> None:
    result = run_campaign("status", "weekly")
    assert (result.exit_code, result.stdout) == (1, "weekly has had no run in dev.\n")
    assert (
        run_campaign("status", "weekly", "--json").stdout == '{"stage":"dev","campaign":"weekly","runs":[]}\n'
    )


def test_the_json_of_campaign_status_has_the_counts_of_a_run_but_not_its_claim_or_secret(
    world: CampaignStage,
) -> None:
    world.collected()
    answer = json.loads(run_campaign("status", "weekly", "--run", RUN, "--json").stdout)
    assert (answer["stage"], answer["campaign"]) == ("dev", "weekly")
    (found,) = answer["runs"]
    assert (found["state"], found["recipients"], found["composed"]) == ("collected", 40, 38)
    assert not {"claim_token", "id_secret"} & found.keys()


# stop


def test_the_stop_of_a_run_requires_a_confirmation(world: CampaignStage) -> None:
    world.begun()
    assert run_campaign("stop", "weekly", "--run", RUN, *WHY, typed="n\n").exit_code == 1
    assert state_of_run(world) == "collecting"
    result = run_campaign("stop", "weekly", "--run", "2026-11-21T15:00+01:00", *WHY, typed="y\n")
    assert result.exit_code == 0
    assert "Stop run 2026-11-21T14:00Z of weekly in dev" in result.stderr
    assert f"mailroom campaign start weekly --run {RUN} --stage dev" in result.stdout
    assert state_of_run(world) == "stopped"
    shown = " ".join(run_campaign("status", "weekly").stdout.split())
    assert f"stop run {RUN} 2026-11-21 14:00:34 UTC by moto (command): a wrong list" in shown


def test_campaign_status_shows_when_by_whom_and_why_a_run_is_paused_until_it_is_resumed(
    world: CampaignStage,
) -> None:
    world.begun()
    paused = run_campaign("pause", "weekly", "--run", RUN, "--why", "a wrong link")
    for shown in (paused.stdout, run_campaign("status", "weekly").stdout):
        words = " ".join(shown.split())
        assert "state paused nothing more is collected or sent until it is resumed" in words
        assert "paused since 2026-11-21T14:00" in words
        assert "by moto: a wrong link" in words
    assert f"{RUN} paused" in " ".join(run_campaign("list").stdout.split())
    (found,) = json.loads(run_campaign("status", "weekly", "--json").stdout)["runs"]
    reason = "by arn:aws:sts::123456789012:user/moto: a wrong link"
    assert (found["state"], found["paused"].partition("Z ")[2]) == ("collecting", reason)
    assert run_campaign("resume", "weekly", "--run", RUN).exit_code == 2
    resumed = run_campaign("resume", "weekly", "--run", RUN, "--why", "it is right")
    assert ("paused" in resumed.stdout, state_of_run(world)) == (False, "collecting")
    assert "by moto (command): it is right" in " ".join(run_campaign("status", "weekly").stdout.split())


def test_a_pause_of_a_stopped_run_is_refused_with_the_command_that_continues_it(world: CampaignStage) -> None:
    world.begun()
    run_campaign("stop", "weekly", "--run", RUN, *WHY, "--yes")
    result = run_campaign("pause", "weekly", "--run", RUN, "--why", "a wrong link")
    assert (result.exit_code, "mailroom campaign start starts it again" in result.stderr) == (2, True)


def test_campaign_stop_exits_with_1_if_the_run_is_stopped_already(world: CampaignStage) -> None:
    world.begun()
    run_campaign("stop", "weekly", "--run", RUN, *WHY, "--yes")
    result = run_campaign("stop", "weekly", "--run", RUN, *WHY, "--yes")
    assert result.exit_code == 1
    assert "is stopped already" in result.stdout


# a run of a removed campaign, and a lost run


def test_a_run_is_paused_resumed_and_stopped_after_the_folder_of_its_campaign_was_removed(
    world: CampaignStage,
) -> None:
    world.collected()
    shutil.rmtree(world.root / "campaigns" / "weekly")
    assert run_campaign("pause", "weekly", "--run", RUN, "--why", "it is over").exit_code == 0
    assert run_campaign("resume", "weekly", "--run", RUN, "--why", "it is right").exit_code == 0
    assert run_campaign("stop", "weekly", "--run", RUN, *WHY, "--yes").exit_code == 0
    assert state_of_run(world) == "stopped"
    assert f"weekly, run {RUN}" in run_campaign("status", "weekly").stdout
    assert "There is no campaign 'news'; there are: draft, weekly." in removed(world, "news").stderr


def removed(world: CampaignStage, name: str) -> Result:
    """The status of a campaign without runs, after its folder was removed."""
    world.write("campaigns/weekly/campaign.toml", "")
    shutil.rmtree(world.root / "campaigns" / name)
    return run_campaign("status", name)


def test_the_stop_of_a_run_that_the_table_of_runs_has_lost_ends_the_wait_of_its_messages(
    world: CampaignStage,
) -> None:
    start = CampaignStart("weekly", "autumn", int(NOW * 1000) - 1)

    def halted() -> str:
        return RunStates(world.dynamodb, RUNS, lambda: NOW).halted([start])[start]

    assert halted() == RUN_UNKNOWN
    refused = run_campaign("stop", "weekly", "--run", "autumn", *WHY, "--lost", typed="n\n")
    assert "Stop run autumn of weekly in dev, and cancel the messages that wait for it?" in refused.stderr
    assert (refused.exit_code, halted()) == (1, RUN_UNKNOWN)
    result = run_campaign("stop", "weekly", "--run", "autumn", *WHY, "--lost", "--yes")
    assert (result.exit_code, halted()) == (0, STOPPED)
    assert "Run autumn is recorded as stopped." in result.stdout


def test_a_lost_run_that_was_recorded_as_stopped_is_shown_but_cannot_be_started(world: CampaignStage) -> None:
    world.counted()
    assert run_campaign("stop", "weekly", "--run", "autumn", *WHY, "--lost", "--yes").exit_code == 0
    shown = run_campaign("status", "weekly", "--run", "autumn")
    assert (shown.exit_code, "stopped" in shown.stdout) == (0, True)
    result = run_campaign("start", "weekly", "--run", "autumn", "--new", "--yes")
    assert result.exit_code == 2
    assert "Run autumn of weekly was recorded as stopped after the table of runs had lost it" in result.stderr
    assert "Start a run of another name" in result.stderr
    assert not world.started()
    assert not world.runs.begin("weekly", "autumn", "s-2", RUN)


def test_the_option_lost_is_refused_for_a_run_that_the_table_has(world: CampaignStage) -> None:
    world.begun()
    result = run_campaign("stop", "weekly", "--run", RUN, *WHY, "--lost", "--yes")
    assert (result.exit_code, state_of_run(world)) == (2, "collecting")
    assert f"The table of runs has run {RUN} of weekly: stop it without --lost." in result.stderr


def test_the_option_lost_is_refused_if_the_run_is_restored_during_the_confirmation(
    world: CampaignStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def restores(*_: object, **__: object) -> bool:
        world.begun()
        return True

    monkeypatch.setattr("typer.confirm", restores)
    result = run_campaign("stop", "weekly", "--run", RUN, *WHY, "--lost")
    assert (result.exit_code, state_of_run(world)) == (2, "collecting")
