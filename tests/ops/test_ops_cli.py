"""What every command has from `mailroom` itself: its answer alone on standard output, and no metrics."""

import subprocess
import sys
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


def run(sqs: Any) -> Result:
    """A command of `mailroom` that gives up letters, and answers."""
    app = typer.Typer()
    app.callback()(cli.main)

    @app.command()
    def letters() -> None:
        set_visibility(sqs, "url", [("receipt", 0)] * 10 * BATCHES)
        typer.echo("{}")

    return CliRunner().invoke(app, ["letters"])


def test_every_command_begins_so() -> None:
    assert cli.app.registered_callback is not None
    assert cli.app.registered_callback.callback is cli.main


def test_a_command_ends_its_work_however_many_calls_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POWERTOOLS_METRICS_NAMESPACE", raising=False)
    metrics.clear_metrics()
    sqs = Refusing()
    result = run(sqs)
    assert (result.exception, result.exit_code) == (None, 0)
    assert sqs.calls == BATCHES
    assert not metrics.metric_set


def test_what_the_library_complains_of_goes_beside_the_answer() -> None:
    before = [each.stream for each in logger.handlers]  # type: ignore[attr-defined]
    result = run(Refusing())
    assert result.stdout == "{}\n"
    assert result.stderr.count("visibility not set") == BATCHES
    assert [each.stream for each in logger.handlers] == before  # type: ignore[attr-defined]


@pytest.mark.process
@pytest.mark.parametrize("words", [["--help"], ["status", "--help"]])
def test_help_waits_for_no_import_of_boto3_nor_of_another_commands_modules(words: list[str]) -> None:
    program = (
        "import sys; sys.argv = ['mailroom', *sys.argv[1:]]; import atexit\n"
        "atexit.register(lambda: print(*sorted(sys.modules), file=sys.stderr))\n"
        "import runpy; runpy.run_module('mailroom_ops', run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *words], cwd=ROOT, capture_output=True, text=True, check=True
    )
    imported = {*done.stderr.split()}
    assert "mailroom_ops.cli" in imported
    assert not imported & {
        "boto3",
        "botocore.client",
        "jinja2",
        "minijinja",
        "mailroom_ops.campaigns.commands",
        "mailroom_ops.doctor.run",
    }


@pytest.mark.parametrize("words", [["campaign", "start"], ["failures"]])
def test_the_paragraphs_of_help_fill_the_terminal_whatever_the_width_of_the_source(words: list[str]) -> None:
    shown = CliRunner().invoke(cli.app, [*words, "--help"], env={"COLUMNS": "300"}).stdout
    first = next(line for line in shown.splitlines() if line.startswith((" With --run", " --since goes")))
    assert first.rstrip().endswith(("of its audience are faulty.", "many messages failed."))


@pytest.mark.parametrize(("typed", "meant"), [("stauts", "status"), ("dead-leters", "dead-letters")])
def test_a_misspelt_command_is_answered_with_the_one_that_was_meant(typed: str, meant: str) -> None:
    result = CliRunner().invoke(cli.app, [typed], env={"COLUMNS": "100"})
    assert result.exit_code == 2
    assert f"Did you mean '{meant}'?" in result.stderr
