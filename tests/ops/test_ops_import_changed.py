"""A file that was changed during its import or after its interruption: each row is put exactly once."""

import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from mailroom_ops.campaigns.imported_items import Items
from tests.support.ops.message import Stage, answer, run, write, write_mails
from tests.support.unit.fakes import client_error

pytestmark = pytest.mark.usefixtures("stage")
MAIL = ("--channel", "mail", "--workers", "1")
NUMBERED = (*MAIL, "--id-prefix", "news")
ROWS, PUT = 40, 20


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


def deny() -> None:
    raise client_error("AccessDeniedException")


def addresses(*names: str) -> list[str]:
    return [f"{name}@example.com" for name in names or [f"p{row:02}" for row in range(ROWS)]]


def cut_off(stage: Stage, file: Path, *words: str) -> None:
    """Run an import of the file that stops halfway."""
    stage.instead["dynamodb"] = CutOff(stage.dynamodb, PUT, deny)
    assert run("import", str(file), *words).exit_code == 2
    del stage.instead["dynamodb"]
    assert len(stage.mailbox()) == PUT


def words_of_refusal(result: Result) -> str:
    assert (result.exit_code, result.stdout) == (2, "")
    return " ".join(result.stderr.split())


def emails_in_mailbox(stage: Stage) -> list[str]:
    return sorted(item["email"] for item in stage.mailbox().values())


def test_an_import_that_makes_ids_of_line_numbers_stops_if_the_lines_of_its_file_have_moved(
    stage: Stage, tmp_path: Path
) -> None:
    file = write_mails(tmp_path / "p.csv", "email", *addresses())
    cut_off(stage, file, *NUMBERED)
    write_mails(file, "email", "first@example.com", *addresses())
    result = run("import", str(file), *NUMBERED)
    assert result.exit_code == 2
    said = " ".join(result.stdout.split())
    assert "line 2 has the id of another message, and ids are made of line numbers" in said
    assert "Restore the file" in said
    assert len(stage.mailbox()) == PUT
    write_mails(file, "email", *addresses())
    assert answer(run("import", str(file), *NUMBERED, "--json"))["existed"] == PUT
    assert emails_in_mailbox(stage) == addresses()


@pytest.mark.parametrize(
    ("name", "header", "line"),
    [
        ("p.csv", ["id,email,subject,text"], "{0},p{0:02}@example.com,Hello,Hi"),
        ("p.jsonl", [], '{{"id": "{0}", "email": "p{0:02}@example.com", "subject": "Hello", "text": "Hi"}}'),
    ],
)
def test_a_repeated_import_of_a_reordered_file_puts_each_message_once_if_the_lines_have_ids(
    stage: Stage, tmp_path: Path, name: str, header: list[str], line: str
) -> None:
    lines = [line.format(row) for row in range(ROWS)]
    file = write(tmp_path / name, *header, *lines)
    cut_off(stage, file, *NUMBERED)
    write(file, *header, lines[-1], *lines[:-1])
    assert run("import", str(file), *NUMBERED).exit_code == 0
    assert emails_in_mailbox(stage) == addresses()


@pytest.mark.parametrize("words", [(), ("--dry-run",)])
def test_a_file_that_shrinks_during_the_import_is_refused(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    note = "x" * 20_000  # so that the file is read in more than one piece
    file = write_mails(tmp_path / "p.csv", "email,note", *(f"{each},{note}" for each in addresses()))
    item = Items.item

    def cut(self: Items, entry: Any, values: Any) -> Any:
        os.truncate(file, 1000)
        return item(self, entry, values)

    monkeypatch.setattr(Items, "item", cut)
    result = run("import", str(file), *NUMBERED, *words)
    assert f"{file} has changed since this command began to read it: it is shorter now" in words_of_refusal(
        result
    )
    assert {item["note"] for item in stage.mailbox().values()} <= {note}
