"""Refused lines: the answer names them, they are fixed where they stand, and the command is run again."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.ops.message import Stage, deployed, run, write, write_mails

MAIL = ("--channel", "mail", "--id-prefix", "n")


@pytest.fixture(autouse=True)
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    with deployed(monkeypatch) as stage:
        yield stage


def refused(file: Path) -> list[tuple[int, str, str]]:
    """Import the file, and return the refused lines that the answer names."""
    result = run("import", str(file), *MAIL, "--json")
    faults = json.loads(result.stdout)["faults"]
    assert result.exit_code == (1 if faults else 0)
    return [(each["line"], each["column"], each["problem"]) for each in faults]


def test_of_many_refused_lines_a_terminal_shows_twenty_and_json_names_a_thousand(tmp_path: Path) -> None:
    file = write_mails(tmp_path / "p.csv", "email", *(["bad"] * 1_001))
    assert [line for line, _, _ in refused(file)] == [*range(2, 1_002)]
    shown = run("import", str(file), *MAIL).stdout
    assert "- line 21, email" in shown
    assert "- line 22, email" not in shown
    assert "and 981 more; --json names the first 1,000." in shown


def test_lines_that_were_fixed_where_they_stand_are_put_by_the_next_run(stage: Stage, tmp_path: Path) -> None:
    file = write_mails(
        tmp_path / "p.csv", "email,name", "a@example.com,A", "bad,B", "worse,C", "d@example.com,D"
    )
    assert [line for line, _, _ in refused(file)] == [3, 4]
    file.write_text(file.read_text().replace(",bad,", ",b@example.com,"))
    assert [line for line, _, _ in refused(file)] == [4]
    assert {id_: item["email"] for id_, item in stage.mailbox().items()} == {
        "n-2": "a@example.com",
        "n-3": "b@example.com",
        "n-5": "d@example.com",
    }
    file.write_text(file.read_text().replace(",worse,", ",c@example.com,"))
    assert refused(file) == []


def test_lines_of_json_are_named_in_the_same_way(stage: Stage, tmp_path: Path) -> None:
    numbers = ("1.50", "1E999999999999999999999", "1E300", "2")
    lines = [
        f'{{"to": "a@example.com", "subject": "Hello", "text": "Hi", "n": {number}}}' for number in numbers
    ]
    file = write(tmp_path / "p.jsonl", *lines, '{"to": ', "[1]")
    assert [line for line, _, _ in refused(file)] == [2, 3, 5, 6]
    assert set(stage.mailbox()) == {"n-1", "n-4"}


def test_a_line_that_is_too_long_costs_itself_alone(stage: Stage, tmp_path: Path) -> None:
    file = write_mails(tmp_path / "p.csv", "email,name", f"a@example.com,{'x' * 900_000}", "b@example.com,B")
    assert [line for line, _, _ in refused(file)] == [2]
    assert set(stage.mailbox()) == {"n-3"}
