"""A file that was changed while its import was cut off, or under way: nobody is left out, and nobody put
twice."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from ops.imports.items import Items
from tests.support.ops.message import Stage, answer, deployed, run, write
from tests.support.unit.fakes import client_error

MAIL = ("--channel", "mail", "--set", "subject=Hello", "--set", "text=Hi", "--workers", "1")
NUMBERED = (*MAIL, "--id-prefix", "news")
ROWS, PUT = 40, 20


@pytest.fixture(autouse=True)
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    with deployed(monkeypatch) as stage:
        yield stage


class CutOff:
    """A DynamoDB that takes so many puts, and calls `then` for each more."""

    def __init__(self, real: Any, most: int, then: Any) -> None:
        self._real = real
        self._left = most
        self._then = then

    def put_item(self, **asked: Any) -> Any:
        self._left -= 1
        if self._left < 0:
            self._then()
        return self._real.put_item(**asked)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def refusing() -> None:
    raise client_error("AccessDeniedException")


def people(*names: str) -> list[str]:
    return [f"{name}@example.com" for name in names or [f"p{row:02}" for row in range(ROWS)]]


def cut_off(stage: Stage, file: Path, *words: str) -> None:
    """An import of it that came half-way."""
    stage.instead["dynamodb"] = CutOff(stage.dynamodb, PUT, refusing)
    assert run("import", str(file), *words).exit_code == 2
    del stage.instead["dynamodb"]
    assert len(stage.mailbox()) == PUT


def refused(result: Result) -> str:
    assert (result.exit_code, result.stdout) == (2, "")
    return " ".join(result.stderr.split())


def served(stage: Stage) -> list[str]:
    return sorted(item["email"] for item in stage.mailbox().values())


def test_numbered_lines_that_have_moved_are_not_begun_anew_and_the_file_as_it_was_goes_on(
    stage: Stage, tmp_path: Path
) -> None:
    file = write(tmp_path / "p.csv", "email", *people())
    cut_off(stage, file, *NUMBERED)
    write(file, "email", "first@example.com", *people())
    for words in ((), ("--restart",)):
        said = refused(run("import", str(file), *NUMBERED, *words))
        assert "has changed since its import was begun, and its ids are made of the lines' numbers" in said
        assert "Put the file back" in said
        assert "another --id-prefix" in said
    assert len(stage.mailbox()) == PUT
    write(file, "email", *people())
    assert answer(run("import", str(file), *NUMBERED, "--json"))["resumed"] is True
    assert served(stage) == people()


def test_with_a_new_prefix_what_was_not_put_can_be_put(stage: Stage, tmp_path: Path) -> None:
    file = write(tmp_path / "p.csv", "email", *people())
    cut_off(stage, file, *NUMBERED)
    write(file, "email", *people()[PUT:])
    words = (*MAIL, "--id-prefix", "rest", "--restart")
    assert run("import", str(file), *words).exit_code == 0
    assert served(stage) == people()


def test_numbered_lines_that_are_as_they_were_may_be_begun_anew(stage: Stage, tmp_path: Path) -> None:
    file = write(tmp_path / "p.csv", "email", *people())
    cut_off(stage, file, *NUMBERED)
    found = answer(run("import", str(file), *NUMBERED, "--restart", "--json"))
    assert (found["existed"], found["put"]) == (PUT, ROWS - PUT)


@pytest.mark.parametrize(
    ("name", "header", "line"),
    [
        ("p.csv", ["id,email"], "{0},p{0:02}@example.com"),
        ("p.csv", ["mailroom_line,mailroom_reason,email"], "{0},email: is wrong,p{0:02}@example.com"),
        ("p.jsonl", [], '{{"id": "{0}", "email": "p{0:02}@example.com"}}'),
        ("p.jsonl", [], '{{"mailroom_line": {0}, "mailroom_reason": "", "email": "p{0:02}@example.com"}}'),
    ],
)
def test_a_changed_file_whose_lines_say_their_ids_is_begun_anew_and_puts_nothing_twice(
    stage: Stage, tmp_path: Path, name: str, header: list[str], line: str
) -> None:
    lines = [line.format(row) for row in range(ROWS)]
    file = write(tmp_path / name, *header, *lines)
    cut_off(stage, file, *NUMBERED)
    write(file, *header, lines[-1], *lines[:-1])
    assert "--restart begins anew" in refused(run("import", str(file), *NUMBERED))
    assert run("import", str(file), *NUMBERED, "--restart").exit_code == 0
    assert served(stage) == people()


def test_an_import_goes_on_only_with_the_options_and_in_the_stage_that_it_began_with(
    stage: Stage, tmp_path: Path
) -> None:
    file = write(tmp_path / "p.csv", "email", *people())
    cut_off(stage, file, *NUMBERED)
    said = refused(run("import", str(file), *NUMBERED, "--set", "lane=normal"))
    assert "was being imported with another sets; use the same as before, or --restart" in said
    stage.functions.environment["PAYLOAD_BUCKET"] = "mailroom-dev-payloads-elsewhere"
    assert "with another stage or account;" in refused(run("import", str(file), *NUMBERED))
    assert len(stage.mailbox()) == PUT


def test_lines_of_json_without_ids_are_numbered_too(stage: Stage, tmp_path: Path) -> None:
    lines = [f'{{"email": "{each}"}}' for each in people()]
    file = write(tmp_path / "p.jsonl", *lines)
    cut_off(stage, file, *NUMBERED)
    write(file, lines[-1], *lines[:-1])
    assert "Put the file back" in refused(run("import", str(file), *NUMBERED, "--restart"))


def test_a_change_of_the_same_length_amid_what_was_read_is_noticed(stage: Stage, tmp_path: Path) -> None:
    file = write(tmp_path / "p.csv", "email", *people())
    cut_off(stage, file, *NUMBERED)
    text = file.read_text()
    file.write_text(text.replace("p11@example.com\np12@example.com", "p12@example.com\np11@example.com"))
    assert "has changed" in refused(run("import", str(file), *NUMBERED))
    assert "has changed" in refused(run("import", str(file), *NUMBERED, "--restart"))
    file.write_text(text)
    assert run("import", str(file), *NUMBERED).exit_code == 0
    assert served(stage) == people()


def test_a_file_that_is_written_into_while_it_is_read_is_not_read_on(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ops.imports.importing.NOTED_EVERY", 0.0)
    file = write(tmp_path / "p.csv", "email", *people(*(f"p{row:03}" for row in range(200))))
    text = file.read_text()

    def rewrite() -> None:
        file.write_text(text.replace("p150@", "q150@"))
        os.utime(file, ns=(0, 0))  # whatever the resolution of the clock of the file system is

    stage.instead["dynamodb"] = CutOff(stage.dynamodb, PUT, rewrite)
    assert "has changed" in refused(run("import", str(file), *NUMBERED))
    assert len(stage.mailbox()) < 100


def test_a_note_that_cannot_be_read_does_not_let_numbers_move(stage: Stage, tmp_path: Path) -> None:
    file = write(tmp_path / "p.csv", "email", *people())
    cut_off(stage, file, *NUMBERED)
    note = tmp_path / "p.csv.mailroom-progress"
    note.write_text("{")
    assert f"delete {note.name}" in refused(run("import", str(file), *NUMBERED, "--restart"))
    note.unlink()
    assert run("import", str(file), *NUMBERED).exit_code == 0
    assert served(stage) == people()


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize(
    ("name", "header", "line"),
    [
        ("p.csv", ["email,note"], "{0},{1}"),
        ("p.jsonl", [], '{{"email": "{0}", "note": "{1}"}}'),
    ],
)
def test_a_file_that_is_cut_short_while_it_is_read_is_refused(
    stage: Stage,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    header: list[str],
    line: str,
    dry_run: bool,
) -> None:
    monkeypatch.setattr("ops.imports.importing.NOTED_EVERY", 60.0)
    note = "x" * 20_000  # so that the file is read in more than one piece
    file = write(tmp_path / name, *header, *(line.format(each, note) for each in people()))
    item = Items.item

    def cut(self: Items, entry: Any, values: Any) -> Any:
        os.truncate(file, 1000)
        return item(self, entry, values)

    monkeypatch.setattr(Items, "item", cut)
    result = run("import", str(file), *NUMBERED, *(["--dry-run"] if dry_run else []))
    assert f"{file} has changed since this command began to read it: it is shorter now" in refused(result)
    assert {item["note"] for item in stage.mailbox().values()} <= {note}


def test_a_note_that_cannot_be_read_is_no_hindrance_where_ids_stay(stage: Stage, tmp_path: Path) -> None:
    file = write(
        tmp_path / "p.jsonl", *(f'{{"id": "{at}", "email": "{each}"}}' for at, each in enumerate(people()))
    )
    (tmp_path / "p.jsonl.mailroom-progress").write_text('{"version": 1}')
    assert run("import", str(file), *MAIL, "--restart").exit_code == 0
    assert served(stage) == people()
