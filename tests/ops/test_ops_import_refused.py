"""The list of refused lines: they are fixed where they stand, and the same command is run again."""

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.ops.message import Stage, deployed, run, write, write_mails

MAIL = ("--channel", "mail", "--id-prefix", "n")


@pytest.fixture(autouse=True)
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    with deployed(monkeypatch) as stage:
        yield stage


def listed(file: Path) -> list[list[str]]:
    with file.with_name(f"{file.name}.mailroom-refused.csv").open(newline="") as lines:
        header, *rows = csv.reader(lines)
    assert header == ["line", "column", "problem"]
    return rows


def test_each_refused_line_is_listed_by_its_number_its_column_and_what_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "p.csv"
    file.write_bytes(
        b'\xef\xbb\xbfsubject,text,email,name\r\nHello,Hi,"bad",A\r\nHello,Hi,good@example.com,B\r\n'
        b'Hello,Hi,x@example.com,"C\r\nHello,Hi,\xff@x,D'
    )
    assert run("import", str(file), *MAIL).exit_code == 1
    first, *others = listed(file)
    assert first == ["2", "email", "'bad' is not a mail address; use name@domain.example"]
    assert [line for line, _, _ in others] == ["4", "5"]


@pytest.mark.parametrize("column", ["=1+1", "+a", "-a", "@SUM(A1)"])
def test_a_spreadsheet_runs_no_formula_that_a_refused_line_brings(tmp_path: Path, column: str) -> None:
    file = tmp_path / "p.csv"
    file.write_bytes(f"email,{column}\na@example.com,\udcff\n".encode(errors="surrogateescape"))
    assert run("import", str(file), *MAIL).exit_code == 1
    assert listed(file) == [["2", f"'{column}", "is not UTF-8; save the file as UTF-8"]]


def test_lines_that_were_fixed_where_they_stand_are_put_by_the_next_run(stage: Stage, tmp_path: Path) -> None:
    file = write_mails(
        tmp_path / "p.csv", "email,name", "a@example.com,A", "bad,B", "worse,C", "d@example.com,D"
    )
    assert run("import", str(file), *MAIL).exit_code == 1
    file.write_text(file.read_text().replace(",bad,", ",b@example.com,"))
    assert run("import", str(file), *MAIL).exit_code == 1
    assert {id_: item["email"] for id_, item in stage.mailbox().items()} == {
        "n-2": "a@example.com",
        "n-3": "b@example.com",
        "n-5": "d@example.com",
    }
    assert [line for line, _, _ in listed(file)] == ["4"]
    file.write_text(file.read_text().replace(",worse,", ",c@example.com,"))
    assert run("import", str(file), *MAIL).exit_code == 0
    assert [*tmp_path.iterdir()] == [file]


def test_lines_of_json_are_listed_in_the_same_way(stage: Stage, tmp_path: Path) -> None:
    numbers = ("1.50", "1E999999999999999999999", "1E300", "2")
    lines = [
        f'{{"to": "a@example.com", "subject": "Hello", "text": "Hi", "n": {number}}}' for number in numbers
    ]
    file = write(tmp_path / "p.jsonl", *lines, '{"to": ', "[1]")
    assert run("import", str(file), *MAIL).exit_code == 1
    assert set(stage.mailbox()) == {"n-1", "n-4"}
    assert [line for line, _, _ in listed(file)] == ["2", "3", "5", "6"]


def test_a_line_that_is_too_long_costs_itself_alone(stage: Stage, tmp_path: Path) -> None:
    file = write_mails(tmp_path / "p.csv", "email,name", f"a@example.com,{'x' * 900_000}", "b@example.com,B")
    assert run("import", str(file), *MAIL).exit_code == 1
    assert set(stage.mailbox()) == {"n-3"}
    assert [line for line, _, _ in listed(file)] == ["2"]


def test_a_list_that_cannot_be_written_is_refused_by_its_name(stage: Stage, tmp_path: Path) -> None:
    file = write_mails(tmp_path / "p.csv", "email", "bad")
    file.with_name("p.csv.mailroom-refused.csv").mkdir()
    result = run("import", str(file), *MAIL)
    assert result.exit_code == 2
    assert "p.csv.mailroom-refused.csv cannot be written" in "".join(result.stderr.split("\n"))
    assert not stage.mailbox()
