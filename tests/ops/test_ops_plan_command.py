"""`plan` as an operator runs it: what it prints, and the exit codes that scripts go by."""

import json

import pytest
from typer.testing import CliRunner, Result

from mailroom_ops.cli import app
from mailroom_ops.shared.times import exactly, speed_of

CHANNELS = ("mail", "sms", "fax", "webhook")
"""Of stage dev."""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["plan", *arguments], env={"COLUMNS": "80"})


def test_prods_bulk_lane_keeps_to_seven_a_second() -> None:
    result = run("--channel", "mail", "--messages", "40000", "--lane", "bulk", "--stage", "prod")
    assert result.exit_code == 0
    assert "40,000 messages by mail (ses), lane bulk" in result.stdout
    assert "of prod: 1 h 35 min (5,714 s)" in result.stdout
    lines = result.stdout.splitlines()
    assert "Limited by the rate: mailroom.prod.channels.mail.messages_per_second." in lines
    assert "The lane's rate of 7 a second needs 2 workers." in lines


def test_messages_above_the_daily_limit_are_shown_by_day() -> None:
    result = run("--channel", "mail", "--messages", "100000", "--lane", "bulk", "--stage", "prod")
    assert result.stdout.count("45,000") == 2
    assert "Limited by the day: mailroom.prod.channels.mail.per_day." in result.stdout


def test_the_local_stages_workers_are_its_bound_and_share_a_vcpu() -> None:
    given = ("--channel", "mail", "--messages", "100000", "--lane", "bulk", "--stage", "local")
    key = "mailroom.local.channels.mail.lanes.bulk.maximum_concurrency"
    lines = run(*given).stdout.splitlines()
    assert f"Limited by the workers: {key}." in lines
    assert "4 workers send 28.7 a second: 0.13 s a message with 256 MB." in lines


def test_the_plan_of_faxes_counts_a_minute_each_and_one_at_a_time_for_a_number() -> None:
    result = run("--channel", "fax", "--messages", "500")
    assert result.exit_code == 0
    assert "2 workers send 0.0333 a second: 60 s a message" in result.stdout
    assert "Faxes to the same number are sent one by one" in result.stdout


def test_json_is_one_object_of_seconds() -> None:
    result = run("--channel", "mail", "--messages", "40000", "--lane", "bulk", "--stage", "prod", "--json")
    said = json.loads(result.stdout)
    assert (said["stage"], said["channel"], said["lane"], said["messages"]) == (
        "prod",
        "mail",
        "bulk",
        40_000,
    )
    assert (said["bound"], said["seconds"], said["speeds"]["rate"]) == ("rate", 5714.3, 7.0)
    assert said["setting"] == "mailroom.prod.channels.mail.messages_per_second"
    assert said["warning"] == ""


def test_too_many_messages_at_once_exit_with_1() -> None:
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
    ],
)
def test_an_unknown_stage_channel_or_lane_exits_with_2_and_a_sentence(
    arguments: tuple[str, ...], part: str
) -> None:
    result = run("--messages", "10", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert part in result.stderr


@pytest.mark.parametrize("messages", ["0", "-5", "many"])
def test_a_plan_without_a_positive_number_of_messages_is_refused(messages: str) -> None:
    assert run("--channel", "mail", "--messages", messages).exit_code == 2


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
def test_a_duration_is_printed_in_its_two_largest_units(seconds: float, words: str) -> None:
    assert exactly(seconds) == words


@pytest.mark.parametrize(
    ("speed", "words"),
    [(10_000.0, "10,000"), (99.96, "100"), (6.7633, "6.76"), (0.0322, "0.0322"), (7.0, "7")],
)
def test_a_speed_is_rounded_to_significant_digits(speed: float, words: str) -> None:
    assert speed_of(speed) == words
