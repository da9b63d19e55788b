"""Terminal output of the commands: printing, questions, and the exit if AWS refuses."""

import os
import pydoc
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

import msgspec
import typer
from botocore.exceptions import BotoCoreError, ClientError
from rich import box
from rich.console import Console, ConsoleOptions
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Column, Table
from rich.text import Text

from mailroom.aws.dynamo_batches import UnprocessedKeys
from mailroom_ops.shared.terminal import Terminal, escaped, printable

screen = Terminal()
errors = Terminal(stderr=True)
T = TypeVar("T")

_UNSIGNED = (
    *("SignatureDoesNotMatch", "InvalidSignatureException"),
    *("RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture"),
)
"""Codes of services that do not take the signature, or the time that it says; each has its own."""
CLOCK = (
    "AWS refuses the request's signature: this machine's clock may be more than 5 minutes off. Set the clock "
    "by NTP, such as `timedatectl set-ntp true`. If the clock is right, the secret key is wrong."
)
_MISSING = (
    *("ResourceNotFoundException", "NoSuchBucket", "QueueDoesNotExist"),
    "AWS.SimpleQueueService.NonExistentQueue",
)
"""Codes of services that have no table, function, bucket or queue of that name."""
_THROTTLED = (
    "Throttl",
    "TooManyRequests",
    "RequestLimitExceeded",
    "ProvisionedThroughputExceeded",
    "SlowDown",
)
"""How the codes of services begin that ask for fewer calls."""
_MALFORMED_URLS = ("Invalid endpoint: ", "Invalid IPv6 URL")
"""How botocore, and the library below it, begin what they say of AWS_ENDPOINT_URL. It has no class of its
own."""


class Refused(Exception):
    """A request that cannot be carried out; a sentence that says why, and what there is instead."""


class NotDeployed(Refused):
    """A stage does not have something that it is deployed with, so that it is another one that is meant, or
    another account. `what` names the thing, `place` says where it was looked for."""

    def __init__(
        self, what: str, how: str = "Deploy the stage", place: str = "this account and region"
    ) -> None:
        super().__init__(
            f"There is no {what} in {place}. {how}, or check --stage, the credentials and the region."
        )


def aws_fault_types() -> tuple[type[Exception], ...]:
    """Exceptions for an AWS that is out of reach or refuses, and for a command that refuses. `sentences_of`
    tells a ValueError of botocore's from one that is a fault in this program."""
    from botocore.parsers import ResponseParserError  # 50 ms that no command waits for

    return (Refused, ClientError, BotoCoreError, ResponseParserError, UnprocessedKeys, ValueError)


@contextmanager
def aws_faults(stage: str) -> Iterator[None]:
    """Exits with 2 and a hint if AWS cannot be reached or refuses, or the command raises Refused."""
    try:
        yield
    except aws_fault_types() as error:
        first, *more = sentences_of(error, stage)
        print_line(first, "red", errors)
        for each in more:
            print_line(each, console=errors)
        raise typer.Exit(2) from None


def sentences_of(error: Exception, stage: str) -> list[str]:
    """Return the sentence for an error of `aws_fault_types`, and what to check. Raises the error again where
    it is a fault in this program."""
    match error:
        case Refused():
            return [f"{error}"]
        case ClientError() if error.response.get("Error", {}).get("Code") in _MISSING:
            what = f"such table, function, bucket or queue of {stage} ({error.operation_name})"
            return [f"{NotDeployed(what)}"]
        case UnprocessedKeys():
            return ["DynamoDB throttles, and did not return everything. Run the command again."]
        case _ if type(error).__name__ == "ResponseParserError":
            return ["The answer is not from AWS: check AWS_ENDPOINT_URL, and whether a proxy is in the way."]
        case ValueError() if not isinstance(error, BotoCoreError):
            if not str(error).startswith(_MALFORMED_URLS):
                raise error
            return [f"{error}. Write AWS_ENDPOINT_URL as a URL, such as http://127.0.0.1:4566."]
    return [f"{error}", *_remedies(error, stage)]


def _remedies(error: Exception, stage: str) -> list[str]:
    code = error.response.get("Error", {}).get("Code", "") if isinstance(error, ClientError) else ""
    if code.startswith(_THROTTLED):
        return ["AWS is busy. Try again in a minute."]
    if code.startswith("ExpiredToken"):
        return ["Sign in again, and repeat it."]
    check = f"Check the credentials, the region, and --stage {stage}."
    if code.startswith("AccessDenied"):
        return ["The credentials lack this right. Ask for it, if the account is the right one.", check]
    return [CLOCK, check] if code in _UNSIGNED else [check]


@contextmanager
def refusals(*more: type[Exception]) -> Iterator[None]:
    """Exit with code 2 and the error's sentence if a command that asks AWS nothing raises Refused or an error
    of `more`."""
    kinds: tuple[type[Exception], ...] = (Refused, *more)
    try:
        yield
    except kinds as refused:
        print_line(f"{refused}", "red", errors)
        raise typer.Exit(2) from None


def print_line(text: str, style: str = "", console: Terminal = screen) -> None:
    """Print a sentence for people, which can be copied whole."""
    console.print(plain(text), style=style, soft_wrap=True)


def print_lines(text: str) -> None:
    """Print a text of several lines unchanged."""
    for line in text.strip("\n").splitlines():
        print_line(line)


def ended(sentence: str) -> str:
    """A sentence with its end, which may be a question."""
    return sentence if sentence.endswith((".", "?", "!")) else f"{sentence}."


def at_a_terminal() -> bool:
    """Whether there is somebody to ask."""
    return sys.stdin.isatty()


def confirm(question: str, *, yes: bool, piped: bool = False) -> None:
    """Ask on stderr, and end the command if the answer is no. `yes`: do not ask. Raises Refused if
    nobody can answer, because something was `piped` to the command."""
    if piped and not yes:
        raise Refused(f"{question} Standard input is taken, so use --yes to confirm.")
    if not yes:
        typer.confirm(printable(question), abort=True, err=True)


@contextmanager
def status(text: str, *, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Show the current step on stderr until it ends; the text can be replaced. `quiet` prints nothing."""
    if quiet:
        yield lambda _: None
        return
    with errors.status(plain(text)) as shown:
        yield lambda text: shown.update(plain(text))


class Advance(Protocol):
    """Report progress: the amount done, the total (None if unknown), the step's name (None if unchanged)."""

    def __call__(self, done: int, total: int | None = None, name: str | None = None) -> None: ...


@contextmanager
def bar(name: str, *, quiet: bool) -> Iterator[Advance]:
    """A progress bar on stderr; `quiet`: none."""
    named = TextColumn("{task.description}", markup=False)  # a name may be a file's or an object's
    columns = (named, BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=errors, disable=quiet, transient=True) as progress:
        task = progress.add_task(name, total=None)

        def advance(done: int, total: int | None = None, name: str | None = None) -> None:
            bound = None if total is None else max(done, total)
            progress.update(task, completed=done, total=bound, description=name)

        yield advance


WIDE, SHORTEST = 100, 8
"""Columns of a terminal from which on the lines of a cell stand beside each other, and of the shortest
heading."""


class Beside:
    """Lines of a cell beside each other. A first line of several words, such as a subject, gives way. Ids,
    addresses and reasons stay whole."""

    def __init__(self, lines: Sequence[Text]) -> None:
        self._lines = lines

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> Iterator[Text]:
        heading, *lines = self._lines
        if " " in heading:
            room = options.max_width - sum(2 + line.cell_len for line in lines)
            heading.truncate(max(SHORTEST, room), overflow="ellipsis")
        yield Text("  ").join(self._lines)


class Rows(Table):
    """Table whose cells may have several lines."""

    def add_row(self, *cells: Any, **options: Any) -> None:
        """Add a row, whose lines stand beside each other if the terminal is wide."""
        if screen.width >= WIDE:
            cells = tuple(Beside(list(cell.split())) if "\n" in str(cell) else cell for cell in cells)
        super().add_row(*cells, **options)


def table_of(*columns: str | Column, rows: Iterable[Iterable[str | Text]] = (), **options: Any) -> Table:
    """Return a table in the style of all commands. Each string in `rows` is printed as `plain` prints it."""
    table = Rows(*columns, **{"box": box.SIMPLE_HEAD, "pad_edge": False, **options})
    for row in rows:
        table.add_row(*(plain(cell) if isinstance(cell, str) else cell for cell in row))
    return table


def right(heading: str = "", footer: str = "") -> Column:
    """A column of figures."""
    return Column(heading, footer, justify="right")


def fold(heading: str = "", **options: Any) -> Column:
    """A column of words that are long, which it breaks and does not cut."""
    return Column(heading, overflow="fold", **options)


def whole(heading: str) -> Column:
    """A column of words that are never broken."""
    return Column(heading, no_wrap=True)


def print_answer(answer: T, show: Callable[[T], None], *, as_json: bool) -> None:
    """Print a command's answer: as JSON for programs, or as `show` prints it for people. At a terminal, the
    user's pager shows an answer that is too long for it."""
    if as_json:
        print_json(answer)
        return
    with screen.capture() as printed:
        show(answer)
    if screen.is_terminal and (text := printed.get()).count("\n") >= screen.height:
        os.environ.setdefault("LESS", "FRX")  # as git does: colours stay, and so does the text after `q`
        pydoc.pager(text)
    else:
        screen.file.write(printed.get())


def print_json(answer: object) -> None:
    """Print a command's answer as JSON, for programs."""
    typer.echo(escaped(msgspec.json.encode(answer).decode()))


def percent(part: float) -> str:
    """A part of a whole: 0.0831 as `8.3%`; what is under a hundredth has a figure more."""
    return f"{part:.2%}" if 0 < part < 0.01 else f"{part:.1%}"


def plain(text: str) -> Text:
    """Return untrusted text on one line: a line break in it must not pass for the end of an entry."""
    return lines(text.replace("\n", "�"))


def lines(text: str) -> Text:
    """Return untrusted text on several lines."""
    return Text(printable(text))
