"""Properties of every command of `mailroom`: only its answer is on standard output, and it writes no
metrics."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from mailroom.aws.queues import set_visibility
from mailroom.telemetry import logger, metrics
from mailroom_ops import cli
from tests.support import ROOT
from tests.support.unit.fakes import client_error

BATCHES = 150
"""More than the hundred values after which Powertools writes by itself."""


class Refusing:
    """An SQS that sets no visibility."""

    def __init__(self) -> None:
        self.calls = 0

    def change_message_visibility_batch(self, **_: Any) -> None:
        self.calls += 1
        raise client_error("ServiceUnavailable", status=503)


def give_up_letters(sqs: Any) -> Result:
    """A command of `mailroom` that gives up letters, and answers."""
    app = typer.Typer()
    app.callback()(cli.main)

    @app.command()
    def letters() -> None:
        set_visibility(sqs, "url", [("receipt", 0)] * 10 * BATCHES)
        typer.echo("{}")

    return CliRunner().invoke(app, ["letters"])


def test_the_function_main_is_the_callback_that_typer_runs_before_every_command() -> None:
    assert cli.app.registered_callback is not None
    assert cli.app.registered_callback.callback is cli.main


def test_a_command_exits_with_0_although_sqs_refuses_each_batch_of_visibility_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("POWERTOOLS_METRICS_NAMESPACE", raising=False)
    metrics.clear_metrics()
    sqs = Refusing()
    result = give_up_letters(sqs)
    assert (result.exception, result.exit_code) == (None, 0)
    assert sqs.calls == BATCHES
    assert not metrics.metric_set


def test_log_lines_of_the_package_mailroom_go_to_standard_error_in_a_command() -> None:
    before = [each.stream for each in logger.handlers]  # type: ignore[attr-defined]
    result = give_up_letters(Refusing())
    assert result.stdout == "{}\n"
    assert result.stderr.count("visibility not set") == BATCHES
    assert [each.stream for each in logger.handlers] == before  # type: ignore[attr-defined]


IMPORTED = """
import sys
from mailroom_ops.__main__ import main

def imported(*words):
    sys.argv = ["mailroom", *words]
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, words
    print(*sorted(sys.modules), file=sys.stderr)

imported("--help")
imported("messages", "show", "--help")
"""
"""Program that runs two commands. After each it prints the modules that are imported by then."""


@pytest.mark.process
def test_the_help_of_a_command_does_not_import_modules_of_aws_the_cdk_or_other_commands(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "AWS_CONFIG_FILE": "/dev/null"},
        capture_output=True,
        text=True,
        check=True,
    )
    help_of_all, help_of_one = (set(line.split()) for line in done.stderr.splitlines())
    slow = {"boto3", "botocore.client", "jinja2", "minijinja", "aws_cdk"}
    slow |= {"mailroom_ops.campaigns.commands", "mailroom_ops.doctor.run"}
    assert "mailroom_ops.cli" in help_of_all
    assert not help_of_all & {*slow, "pydantic"}
    assert not help_of_one & slow


@pytest.mark.parametrize("words", [["campaign", "start"], ["messages", "list"]])
def test_the_paragraphs_of_a_help_text_fill_the_width_of_the_terminal(words: list[str]) -> None:
    shown = CliRunner().invoke(cli.app, [*words, "--help"], env={"COLUMNS": "300"}).stdout
    first = next(line for line in shown.splitlines() if line.startswith((" With --run", " --since and")))
    assert first.rstrip().endswith(("can be started again for 60 days.", "lists its latest 3 runs."))


@pytest.mark.parametrize(("typed", "meant"), [("lanes", "lane"), ("messages dead-leters", "dead-letters")])
def test_a_misspelt_command_is_refused_with_the_most_similar_one(typed: str, meant: str) -> None:
    result = CliRunner().invoke(cli.app, typed.split(), env={"COLUMNS": "100"})
    assert result.exit_code == 2
    assert f"Did you mean '{meant}'?" in result.stderr


def test_each_example_of_a_help_text_is_a_paragraph_of_its_own() -> None:
    for command, number in (("send", 2), ("messages resend", 3)):
        words = [*command.split(), "--help"]
        lines = CliRunner().invoke(cli.app, words, env={"COLUMNS": "300"}).stdout.splitlines()
        assert sum(line.startswith(" Example: mailroom") for line in lines) == number
        assert not any(line.count("Example:") > 1 for line in lines)
