"""Stored text on the terminal: it is shown literally, and cannot control the terminal."""

import ast
import io
import json
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from mailroom_local.commands import _inbox_table
from mailroom_ops.shared import screen
from mailroom_ops.shared.printable import printable
from mailroom_ops.shared.terminal import LogStream, Terminal
from tests.support import ROOT

BIDI = "".join(map(chr, (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))))
CONTROLS = "".join(map(chr, (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029))).translate({9: "", 10: ""})
HOSTILE = f"50% off [/b] [bold]x[/bold] :smile: \x1b[2J\x1b]52;c;AA==\x07\x9b31m{BIDI}{CONTROLS}end"
HARMLESS = "50% off [/b] [bold]x[/bold] :smile:"


def obeyed(text: str) -> set[str]:
    """Characters of a text that control a terminal, besides new lines and spaces."""
    controls = {each for each in text if unicodedata.category(each) in ("Cc", "Zl", "Zp")}
    return (controls | (set(BIDI) & set(text))) - {"\n"}


def table_with(text: Any) -> Table:
    made = Table(title=text, caption=text)
    made.add_column(text)
    made.add_row(text)
    return made


@pytest.mark.parametrize(
    "made",
    [
        str,
        Text,
        table_with,
        lambda text: table_with(Text(text)),
        lambda text: Panel(text),
        screen.plain,
        screen.lines,
    ],
    ids=["string", "text", "table", "table of texts", "panel", "plain", "lines"],
)
def test_control_characters_in_printed_text_are_shown_and_not_executed(made: Callable[[str], Any]) -> None:
    terminal = Terminal(width=400, force_terminal=False)
    with terminal.capture() as printed:
        terminal.print(made(HOSTILE))
    assert HARMLESS in printed.get()
    assert not obeyed(printed.get())


def test_a_table_with_control_characters_keeps_its_width() -> None:
    terminal = Terminal(width=80, force_terminal=False)
    with terminal.capture() as printed:
        terminal.print(table_with("\x1b" * 9))
    borders = {len(line) for line in printed.get().splitlines() if line.startswith(("┃", "│", "└"))}
    assert len(borders) == 1


def test_letters_tabs_and_joiners_of_every_language_are_printed_unchanged() -> None:
    text = "Straße, 東京, 👩‍👩‍👧, می‌خواهم, a\tb\nc"
    assert printable(text) == text


def test_a_line_break_is_printed_as_a_replacement_mark_where_the_text_must_be_one_line() -> None:
    assert screen.plain("a\nb").plain == "a�b"
    assert screen.lines("a\nb").plain == "a\nb"


def test_questions_spinners_and_bars_escape_control_characters(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal(stderr=True, width=400, force_terminal=True, color_system=None)
    monkeypatch.setattr(screen, "errors", terminal)
    monkeypatch.setattr("typer.confirm", lambda question, **_: typer.echo(question))
    screen.confirm(HOSTILE, yes=False)
    with screen.status(HOSTILE, quiet=False) as say:
        say(HOSTILE)
    with screen.bar(HOSTILE, quiet=False) as advance:
        advance(1, 2, HOSTILE)
    printed = capsys.readouterr()
    assert "[/b]" in printed.out
    assert printed.err.count("[/b]") >= 2
    assert not obeyed(printed.out)
    assert "\x9b" not in printed.err  # Rich's own escapes begin with ESC
    assert "]52;" not in printed.err.replace("�]52;", "")


def test_json_contains_the_exact_text_with_escaped_control_characters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    screen.print_json({"text": HOSTILE, "ü": "👩‍👩‍👧"})
    printed = capsys.readouterr().out
    assert json.loads(printed) == {"text": HOSTILE, "ü": "👩‍👩‍👧"}
    assert not obeyed(printed)
    assert "👩‍👩‍👧" in printed


def test_a_log_line_of_the_commands_escapes_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    LogStream().write(json.dumps({"said": HOSTILE}, ensure_ascii=False) + "\n")
    printed = capsys.readouterr().err
    assert json.loads(printed) == {"said": HOSTILE}
    assert not obeyed(printed)


def test_the_table_of_the_local_inbox_escapes_the_subject_and_the_recipient_of_a_mail() -> None:
    mail = {
        "received_at": "2026-11-22T10:00:00.000",
        "channel": "mail",
        "to": HOSTILE,
        "content": {"subject": "50% off [/b]"},
    }
    terminal = Terminal(width=200, force_terminal=False)
    with terminal.capture() as printed:
        terminal.print(_inbox_table([mail]))
    assert "50% off [/b]" in printed.get()
    assert not obeyed(printed.get())


MESSAGE = ("Your order 42 has been shipped", "to ada.lovelace@example.com", "order-2026-11-0000042")


@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        (99, [[each] for each in MESSAGE]),
        (100, [["Your order 42 has been shipped", *MESSAGE[1:]]]),
    ],
)
def test_a_listed_message_takes_one_row_if_the_terminal_has_at_least_100_columns(
    columns: int, shown: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert printed_rows(monkeypatch, columns, *MESSAGE) == shown


def test_a_table_at_a_terminal_wraps_a_long_reason_and_does_not_shorten_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reason = " ".join(map(str, range(90)))
    rows = printed_rows(monkeypatch, 100, "order-42", reason)
    assert " ".join(part for row in rows for part in row) == f"order-42 {reason}"


def printed_rows(monkeypatch: pytest.MonkeyPatch, columns: int, *cell: str) -> list[list[str]]:
    """The lines of a table whose only cell has these lines, each by what stands beside each other."""
    terminal = Terminal(width=columns, force_terminal=False)
    monkeypatch.setattr(screen, "screen", terminal)
    with terminal.capture() as printed:
        terminal.print(screen.table_of("message", rows=[[Text("\n".join(cell))]]))
    return [line.strip().split("  ") for line in printed.get().splitlines()[3:] if line.strip()]


def test_a_sentence_is_wrapped_between_words_at_a_terminal_and_copied_as_one_line() -> None:
    sentence = "Run mailroom messages dead-letters --stage prod, then fix the cause."
    terminal = Terminal(width=20, force_terminal=True, color_system=None)
    with terminal.capture() as printed:
        terminal.print(f"{sentence}\n{sentence}", soft_wrap=True)
    for line in printed.get().splitlines():
        assert line.split() == sentence.split()
        rows = [line[at : at + 20] for at in range(0, len(line), 20)]
        assert [word for row in rows for word in row.split()] == sentence.split()


def test_a_sentence_is_printed_unwrapped_if_the_output_is_not_a_terminal() -> None:
    terminal = Terminal(width=20, force_terminal=False)
    with terminal.capture() as printed:
        terminal.print("mailroom messages dead-letters --stage prod", soft_wrap=True)
    assert printed.get() == "mailroom messages dead-letters --stage prod\n"


@pytest.mark.parametrize(
    ("lines", "at_a_terminal", "as_json", "pages"),
    [(9, True, False, 0), (10, True, False, 1), (10, False, False, 0), (10, True, True, 0)],
)
def test_the_pager_is_used_only_at_a_terminal_for_an_output_longer_than_the_screen(
    lines: int, at_a_terminal: bool, as_json: bool, pages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    paged, out = list[str](), io.StringIO()
    terminal = Terminal(file=out, width=80, height=10, force_terminal=at_a_terminal, color_system=None)
    monkeypatch.setattr(screen, "screen", terminal)
    monkeypatch.setattr("pydoc.pager", paged.append)
    answer = "\n".join(map(str, range(lines)))
    screen.print_answer(answer, terminal.print, as_json=as_json)
    assert paged == [f"{answer}\n"] * pages
    assert out.getvalue() == ("" if pages or as_json else f"{answer}\n")


LOGS = (
    *(
        "mailroom_local/pump/functions.py",
        "mailroom_local/pump/driver.py",
        "mailroom_local/pump/fifo.py",
        "mailroom_local/pump/metrics.py",
    ),
    "mailroom_local/database/postgres.py",
    "mailroom_local/sign_in/server.py",
    *("mailroom_local/providers/twilio_callbacks.py", "mailroom_local/providers/ses_feedback.py"),
    "mailroom_local/providers/resend_mail.py",
)
"""Programs that run in the background, and write to a file."""
PAST_THE_TERMINAL = {
    "mailroom_ops/shared/screen.py": {"echo"},  # JSON, escaped, and CSV of csv_lines
    "mailroom_ops/setup/schema.py": {"echo"},  # of this repository
    "mailroom_ops/setup/webhook_key.py": {"echo"},  # base64
    "mailroom_ops/cli.py": {"echo"},  # the version
    "mailroom_ops/setup/__main__.py": {"print"},  # runs before any package is installed
    **{file: {"print"} for file in LOGS},
}
"""The files that write to the terminal past `Terminal`, and how."""


def ways_past_terminal(file: Path) -> set[str]:
    """The ways past `Terminal` that a file uses."""
    text = file.read_text()
    if not re.search(r"\b(print|Console|s?echo|from_markup)\(", text):
        return set()  # parsing takes a hundred times as long
    nodes = list(ast.walk(ast.parse(text)))
    called = {each.func for each in nodes if isinstance(each, ast.Call)}
    names = {each.id for each in called if isinstance(each, ast.Name)} & {"print", "Console"}
    methods = {each.attr for each in called if isinstance(each, ast.Attribute)}
    return names | (methods & {"echo", "secho", "from_markup"})


def test_the_commands_print_by_the_class_terminal_except_in_the_modules_that_this_test_lists() -> None:
    files = [*(ROOT / "mailroom_ops").rglob("*.py"), *(ROOT / "mailroom_local").rglob("*.py")]
    found = {str(file.relative_to(ROOT)): ways for file in files if (ways := ways_past_terminal(file))}
    assert found == PAST_THE_TERMINAL
