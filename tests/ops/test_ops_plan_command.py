"""`plan` as an operator runs it: what it prints, and the exit codes that scripts go by."""

import copy
import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from mailroom_ops.cli import app
from mailroom_ops.estimates.lanes import Stages
from mailroom_ops.times import exactly, speed_of
from tests.support import ROOT
from tests.support.ops.plan import CONTEXT
from tests.support.stacks.refusals import STAGES

CHANNELS = dict.fromkeys(lane.channel for lane in Stages(STAGES).lanes("dev"))
"""Of stage dev."""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["plan", *arguments], env={"COLUMNS": "80"})


def test_prods_bulk_lane_keeps_to_seven_a_second() -> None:
    result = run("--channel", "mail", "--messages", "40000", "--lane", "bulk", "--stage", "prod")
    assert result.exit_code == 0
    assert "14 x 0.5" in result.stdout
    assert "1 h 35 min (5,714 s)" in result.stdout
    assert (
        "Bounded by the rate: mailroom.prod.channels.mail.messages_per_second (the share of the lane is 0.5)."
    ) in result.stdout.splitlines()
    assert "mailroom.prod.channels.mail.messages_per_second 14 -> 28 would make it" in result.stdout
    assert "4.00" in result.stdout


def test_more_than_the_day_has_room_for_is_shown_by_the_day() -> None:
    result = run("--channel", "mail", "--messages", "100000", "--lane", "bulk", "--stage", "prod")
    assert result.stdout.count("45,000") == 2
    assert "Bounded by the day: mailroom.prod.channels.mail.per_day." in result.stdout


def test_the_local_stages_workers_are_its_bound() -> None:
    result = run("--channel", "mail", "--messages", "100000", "--lane", "bulk", "--stage", "local")
    key = "mailroom.local.channels.mail.lanes.bulk.maximum_concurrency"
    assert f"Bounded by the number of workers: {key}." in result.stdout.splitlines()
    assert f"{key} 4 -> 1000 would make it" in result.stdout


def test_the_campaigns_of_a_stage_that_cannot_be_read_exit_with_2_and_their_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stages = Stages({"dev": {**CONTEXT["dev"], "campaigns": {"enabled": ["nobody"]}}})
    monkeypatch.setattr(Stages, "of", lambda: stages)
    result = run("--channel", "mail", "--messages", "1", "--lane", "bulk")
    assert result.exit_code == 2
    assert "'nobody' has no file campaigns/nobody/campaign.toml" in result.stderr


def test_assumptions_are_named_and_can_be_others() -> None:
    given = ("--channel", "mail", "--messages", "100", "--stage", "local")
    usual, slow = run(*given), run(*given, "--latency", "0.5", "--between", "0.7")
    assert "Assumed: 0.1 s a message in a sender with a whole vCPU (--latency)." in usual.stdout
    assert "Computed: 0.13 s with 256 MB, 14% of a vCPU, and 1 at a time." in usual.stdout
    assert "4 x 10 / (10 x 0.13 s + 0.1 s)" in usual.stdout
    assert "Assumed: 0.5 s a message in a sender with a whole vCPU (--latency)." in slow.stdout
    assert "Computed: 0.53 s with 256 MB, 14% of a vCPU, and 1 at a time." in slow.stdout
    assert "Assumed: 0.7 s from one invocation to the next (--between)." in slow.stdout
    assert "4 x 10 / (10 x 0.53 s + 0.7 s)" in slow.stdout


def test_the_workers_bound_is_shown_with_the_threads_that_share_a_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    context = copy.deepcopy(CONTEXT)
    context["dev"]["channels"]["mail"] |= {"submits_at_once": 4, "memory_mb": 512}
    monkeypatch.setattr(Stages, "of", lambda: Stages(context))
    said = run("--channel", "mail", "--messages", "10").stdout
    # Four threads have three of the ten each, at most.
    assert "2 x 10 / (3 x 0.112 s + 0.1 s)" in said
    assert "Computed: 0.112 s with 512 MB, 29% of a vCPU, and 4 at a time." in said


def test_a_fax_takes_a_minute_if_nobody_says_otherwise_and_its_price_is_not_guessed() -> None:
    result = run("--channel", "fax", "--messages", "500")
    assert result.exit_code == 0
    assert "2 x 1 / (1 x 60 s + 0.1 s)" in result.stdout
    assert "The provider's price for fax is not included: it differs by country" in result.stdout
    assert "A number gets one fax at a time" in result.stdout


@pytest.mark.parametrize("channel", ["mail", "sms", "fax", "webhook"])
@pytest.mark.parametrize("stage", ["dev", "prod", "local"])
def test_every_channel_of_every_stage_has_a_plan(stage: str, channel: str) -> None:
    result = run("--channel", channel, "--messages", "1", "--stage", stage)
    assert result.exit_code == 0
    assert "Estimated: " in result.stdout


def test_json_is_one_object_of_seconds_and_dollars() -> None:
    result = run("--channel", "mail", "--messages", "40000", "--lane", "bulk", "--stage", "prod", "--json")
    said = json.loads(result.stdout)
    assert (said["stage"], said["channel"], said["lane"], said["messages"]) == (
        "prod",
        "mail",
        "bulk",
        40_000,
    )
    assert (said["bound"], said["seconds"], said["bounds"]["rate"]) == ("rate", 5714.3, 7.0)
    assert said["changes"][0]["setting"] == "mailroom.prod.channels.mail.messages_per_second"
    assert said["dollars"]["SES"] == 4
    assert said["warning"] == ""


def test_too_many_at_once_exit_with_1() -> None:
    given = ("--channel", "mail", "--messages", "1000000", "--stage", "dev")
    plain, as_json = run(*given), run(*given, "--json")
    assert (plain.exit_code, as_json.exit_code) == (1, 1)
    assert "Too many at once" in plain.stdout
    assert json.loads(as_json.stdout)["warning"].startswith("Too many at once")


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("--channel", "pigeon"), f"use one of {', '.join(CHANNELS)}."),
        (("--channel", "mail", "--lane", "slow"), "use normal or bulk."),
        (("--channel", "mail", "--stage", "moon"), "use one of dev, prod, local"),
        (("--channel", "mail", "--latency", "0"), "--latency"),
        (("--channel", "mail", "--between", "-1"), "--between"),
    ],
)
def test_what_there_is_not_exits_with_2_and_a_sentence(arguments: tuple[str, ...], part: str) -> None:
    result = run("--messages", "10", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert part in result.stderr


@pytest.mark.parametrize("messages", ["0", "-5", "many"])
def test_a_number_of_messages_is_needed(messages: str) -> None:
    assert run("--channel", "mail", "--messages", messages).exit_code == 2


def test_the_help_has_an_example() -> None:
    result = run("--help")
    assert result.exit_code == 0
    assert "Example: mailroom plan --channel mail" in result.stdout


def test_neither_cdk_nor_an_account_is_needed(tmp_path: Path) -> None:
    script = (
        "import sys; from typer.testing import CliRunner; import typer; import mailroom_ops.cli; "
        "from mailroom_ops.plan.command import plan; "
        "assert 'pydantic' not in sys.modules; "
        "app = typer.Typer(); app.command()(plan); "
        "result = CliRunner().invoke(app, ['--channel', 'mail', '--messages', '5']); "
        "print(result.exit_code, 'aws_cdk' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "AWS_CONFIG_FILE": "/dev/null"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.split() == ["0", "False"]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.04, "0.0 s"),
        (9.96, "10.0 s"),
        (42.4, "42 s"),
        (60, "1 min (60 s)"),
        (4000, "1 h 6 min (4,000 s)"),
        (3600, "1 h (3,600 s)"),
        (14_285.7, "3 h 58 min (14,286 s)"),
        (90_000, "1 d 1 h (90,000 s)"),
        (86_460, "1 d (86,460 s)"),
    ],
)
def test_a_duration_reads_well(seconds: float, words: str) -> None:
    assert exactly(seconds) == words


@pytest.mark.parametrize(
    ("speed", "words"),
    [(10_000.0, "10,000"), (99.96, "100"), (6.7633, "6.76"), (0.0322, "0.0322"), (7.0, "7")],
)
def test_a_speed_has_no_more_digits_than_mean_something(speed: float, words: str) -> None:
    assert speed_of(speed) == words
