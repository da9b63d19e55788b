"""Terminal output of the commands: printing, questions, and the exit if AWS refuses a request."""

import os
import pydoc
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec
import typer
from rich import box
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Column, Table
from rich.text import Text

from mailroom_ops.shared.printable import escaped, printable
from mailroom_ops.shared.refusals import (
    CLOCK as CLOCK,
)
from mailroom_ops.shared.refusals import (
    Advance as Advance,
)
from mailroom_ops.shared.refusals import (
    NotDeployed as NotDeployed,
)
from mailroom_ops.shared.refusals import (
    Refused as Refused,
)
from mailroom_ops.shared.refusals import (
    aws_fault_types as aws_fault_types,
)
from mailroom_ops.shared.refusals import (
    ended as ended,
)
from mailroom_ops.shared.refusals import (
    percent as percent,
)
from mailroom_ops.shared.refusals import (
    sentences_of as sentences_of,
)
from mailroom_ops.shared.terminal import Terminal

screen = Terminal()
errors = Terminal(stderr=True)
T = TypeVar("T")


@contextmanager
def aws_faults(stage: str) -> Iterator[None]:
    """Exit with code 2 and a hint if AWS does not respond or refuses a request, or if the command raises
    Refused."""
    try:
        yield
    except aws_fault_types() as error:
        first, *remedies = sentences_of(error, stage)
        print_line(first, "red", errors)
        for remedy in remedies:
            print_line(remedy, console=errors)
        raise typer.Exit(2) from None


@contextmanager
def refusals(*exceptions: type[Exception]) -> Iterator[None]:
    """Exit with code 2 and the error's text if the block raises Refused or one of `exceptions`. It is for
    commands that make no requests to AWS."""
    kinds: tuple[type[Exception], ...] = (Refused, *exceptions)
    try:
        yield
    except kinds as refusal:
        print_line(f"{refusal}", "red", errors)
        raise typer.Exit(2) from None


def print_line(text: str, style: str = "", console: Terminal = screen) -> None:
    """Print a text on one line, without line breaks, so that it can be copied as a whole."""
    console.print(plain(text), style=style, soft_wrap=True)


def print_unchanged(pieces: Iterable[str]) -> None:
    """Print text for programs, such as CSV, whose pieces are safe and have their own line ends."""
    for piece in pieces:
        typer.echo(piece, nl=False)


def print_lines(text: str) -> None:
    """Print a text of several lines unchanged."""
    for line in text.strip("\n").splitlines():
        print_line(line)


def at_a_terminal() -> bool:
    """Return whether standard input is a terminal, so that a person can answer questions."""
    return sys.stdin.isatty()


def confirm(question: str, *, yes: bool, piped: bool = False) -> None:
    """Ask a question on stderr, unless `yes` is true, and end the command if the answer is no. Raises Refused
    if standard input was `piped`, so that a person cannot answer."""
    if piped and not yes:
        raise Refused(f"{question} Standard input contains the ids, so use --yes to confirm.")
    if not yes:
        typer.confirm(printable(question), abort=True, err=True)


@contextmanager
def status(text: str, *, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Show the current step on stderr until the block ends, and yield a function that replaces its text.
    `quiet` turns the output off."""
    if quiet:
        yield lambda _: None
        return
    with errors.status(plain(text)) as spinner:
        yield lambda text: spinner.update(plain(text))


@contextmanager
def bar(name: str, *, quiet: bool) -> Iterator[Advance]:
    """Show a progress bar on stderr, unless `quiet` is set."""
    description = TextColumn("{task.description}", markup=False)  # names of files are not markup
    columns = (description, BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=errors, disable=quiet, transient=True) as progress:
        task = progress.add_task(name, total=None)

        def advance(done: int, total: int | None = None, name: str | None = None) -> None:
            bound = None if total is None else max(done, total)
            progress.update(task, completed=done, total=bound, description=name)

        yield advance


WIDE = 100
"""Minimum width of a terminal, in columns, for which the lines of a cell are joined into one line."""


class Rows(Table):
    """Table whose cells may have several lines."""

    def add_row(self, *cells: Any, **options: Any) -> None:
        """Add a row. If the terminal is wide, the lines of each cell are joined into one line."""
        if screen.width >= WIDE:
            cells = tuple(Text("  ").join(cell.split()) if "\n" in str(cell) else cell for cell in cells)
        super().add_row(*cells, **options)


def table_of(*columns: str | Column, rows: Iterable[Iterable[str | Text]] = (), **options: Any) -> Table:
    """Return a table in the style of all commands. Each string in `rows` is printed as `plain` prints it."""
    table = Rows(*columns, **{"box": box.SIMPLE_HEAD, "pad_edge": False, **options})
    for row in rows:
        table.add_row(*(plain(cell) if isinstance(cell, str) else cell for cell in row))
    return table


def right(heading: str = "", footer: str = "") -> Column:
    """Return a column of figures."""
    return Column(heading, footer, justify="right")


def stacked(*parts: str) -> Text:
    """Return a cell with each part on a line of its own, without empty parts. Side by side, long parts would
    be cut at 80 columns."""
    return Text("\n").join(plain(part) for part in parts if part)


def narrow(heading: str, width: int) -> Column:
    """Return a column that has a maximum width unless the terminal is wide."""
    return Column(heading, max_width=None if screen.width >= WIDE else width)


def fold(heading: str = "", **options: Any) -> Column:
    """Return a column that breaks long words instead of cutting them."""
    return Column(heading, overflow="fold", **options)


def whole(heading: str) -> Column:
    """Return a column without line breaks."""
    return Column(heading, no_wrap=True)


def print_answer(answer: T, show: Callable[[T], None], *, as_json: bool) -> None:
    """Print a command's answer: as JSON for programs, or as `show` prints it for people. At a terminal, an
    answer with too many lines is shown by the user's pager."""
    if as_json:
        print_json(answer)
        return
    with screen.capture() as printed:
        show(answer)
    if screen.is_terminal and (text := printed.get()).count("\n") >= screen.height:
        # Git's options of `less`: colours are shown, and the text stays on the screen after `q`.
        os.environ.setdefault("LESS", "FRX")
        pydoc.pager(text)
    else:
        screen.file.write(printed.get())


def print_json(answer: object) -> None:
    """Print a command's answer as JSON, for programs."""
    typer.echo(escaped(msgspec.json.encode(answer).decode()))


def plain(text: str) -> Text:
    """Return untrusted text on one line: line breaks are replaced, so that the text cannot look like several
    entries."""
    return lines(text.replace("\n", "�"))


def lines(text: str) -> Text:
    """Return untrusted text with its line breaks, made safe to print."""
    return Text(printable(text))
