"""Counts that commands print: one message, two messages."""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise

import pytest
from typer import Typer

from mailroom_ops.campaigns.dry_run import DryRunAnswer
from mailroom_ops.campaigns.report import print_dry_run
from mailroom_ops.messages.waiting import unlisted
from mailroom_ops.repair.dead_letters import dead_letters
from mailroom_ops.shared.times import duration
from tests.support import ROOT
from tests.support.ops.dead_letters import DeadLettersStage, with_dead_letters
from tests.support.ops.run_app import run_app

STAGE = with_dead_letters
app = Typer()
app.command()(dead_letters)
PLURALS = re.compile(
    r" (more |dead )?(alarms|batches|campaigns|entries|items|letters|messages|pages|recipients|tries)\b"
)
NEVER_ONE = {
    ("doctor/checks/mail.py", " recipients a day"),
    ("doctor/checks/ses_account.py", " recipients today ("),
}
"""Texts after counts that are limits."""


def fixed_plurals() -> Iterator[tuple[str, str]]:
    """Yield each text of a command that follows a number and begins with a plural, with its file."""
    for file in (ROOT / "mailroom_ops").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            values = node.values if isinstance(node, ast.JoinedStr) else []
            for number, text in pairwise(values):
                name = isinstance(number, ast.FormattedValue) and ast.unparse(number.value)
                if not name or name.isupper() or not isinstance(text, ast.Constant):
                    continue
                if PLURALS.match(str(text.value)) and "name" not in name and "quantity" not in name:
                    yield str(file.relative_to(ROOT / "mailroom_ops")), str(text.value)


def test_the_code_prints_a_number_with_a_noun_by_the_function_that_also_has_the_singular() -> None:
    assert set(fixed_plurals()) == NEVER_ONE


@pytest.mark.parametrize(
    ("count", "sentence"),
    [(0, "0 dead letters in dev."), (1, "1 dead letter in dev."), (2, "2 dead letters in dev.")],
)
def test_the_number_of_dead_letters_is_printed_with_a_singular_or_plural_noun(
    stage: DeadLettersStage, count: int, sentence: str
) -> None:
    for number in range(count):
        stage.send("mail-dlq", {"id": f"m-{number}", "event_type": "mail", "to": "ada@example.com"})
    assert run_app(app).stdout.splitlines()[-1] == sentence


@pytest.mark.parametrize(
    ("count", "sentence"),
    [
        (0, "0 recipients on 0 pages; 0 entries are faulty."),
        (1, "1 recipient on 1 page; 1 entry is faulty."),
        (2, "2 recipients on 2 pages; 2 entries are faulty."),
    ],
)
def test_the_numbers_of_a_dry_run_are_printed_with_singular_or_plural_nouns(
    count: int, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_dry_run(DryRunAnswer("weekly", "r", count, count, count, [], [], [], [], []))
    assert sentence in capsys.readouterr().out


def test_durations_and_numbers_of_queued_messages_are_printed_with_singular_or_plural_nouns() -> None:
    assert [duration(seconds) for seconds in (0, 1, 2)] == ["0 seconds", "1 second", "2 seconds"]
    assert [unlisted(count) for count in (0, 1, 2)] == [
        "",
        " so far; 1 message is in queues and not listed yet",
        " so far; 2 messages are in queues and not listed yet",
    ]
