"""Terminal output of the commands: printing, questions, and the exit if AWS refuses a request."""

import os
import pydoc
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

import msgspec
import typer
from botocore.exceptions import BotoCoreError, ClientError
from rich import box
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
"""AWS's error codes for a wrong signature, or for a wrong time in the request."""
CLOCK = (
    "AWS refuses the request's signature: this machine's clock may be more than 5 minutes off. Set the clock "
    "by NTP, such as `timedatectl set-ntp true`. If the clock is right, the secret key is wrong."
)
_MISSING = (
    *("ResourceNotFoundException", "NoSuchBucket", "QueueDoesNotExist"),
    "AWS.SimpleQueueService.NonExistentQueue",
)
"""AWS's error codes for a table, function, bucket or queue that does not exist."""
_THROTTLED = (
    "Throttl",
    "TooManyRequests",
    "RequestLimitExceeded",
    "ProvisionedThroughputExceeded",
    "SlowDown",
)
"""Prefixes of AWS's error codes for too many requests."""
_MALFORMED_URLS = ("Invalid endpoint: ", "Invalid IPv6 URL")
"""Prefixes of botocore's error messages about a malformed AWS_ENDPOINT_URL, for which it raises a plain
ValueError."""


class Refused(Exception):
    """Command that cannot be carried out. The error's text says why, and what to do instead."""


class NotDeployed(Refused):
    """Refusal because a resource is missing that every deployment creates. The operator may have named the
    wrong stage or account."""

    def __init__(
        self, resource: str, remedy: str = "Deploy the stage", place: str = "this account and region"
    ) -> None:
        super().__init__(
            f"There is no {resource} in {place}. {remedy}, or check --stage, the credentials and the region."
        )


def aws_fault_types() -> tuple[type[Exception], ...]:
    """Return the exceptions that are raised if AWS does not respond or refuses a request, or if a command
    refuses. Among ValueErrors, `sentences_of` separates those of botocore from faults of this program."""
    # Imported here, because it takes 50 ms and is needed only after an error.
    from botocore.parsers import ResponseParserError

    return (Refused, ClientError, BotoCoreError, ResponseParserError, UnprocessedKeys, ValueError)


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


def sentences_of(error: Exception, stage: str) -> list[str]:
    """Return a sentence about an error of `aws_fault_types`, and sentences about what to check. Raises the
    error again if it is a fault of this program."""
    match error:
        case Refused():
            return [f"{error}"]
        case ClientError() if error.response.get("Error", {}).get("Code") in _MISSING:
            part = f"such table, function, bucket or queue of {stage} ({error.operation_name})"
            return [f"{NotDeployed(part)}"]
        case UnprocessedKeys():
            return ["DynamoDB throttled the requests, and did not return all items. Run the command again."]
        case _ if type(error).__name__ == "ResponseParserError":
            return ["The response is not from AWS: check AWS_ENDPOINT_URL, and whether there is a proxy."]
        case ValueError() if not isinstance(error, BotoCoreError):
            if not str(error).startswith(_MALFORMED_URLS):
                raise error
            return [f"{error}. Write AWS_ENDPOINT_URL as a URL, such as http://127.0.0.1:4566."]
    return [f"{error}", *_remedies(error, stage)]


def _remedies(error: Exception, stage: str) -> list[str]:
    code = error.response.get("Error", {}).get("Code", "") if isinstance(error, ClientError) else ""
    if code.startswith(_THROTTLED):
        return ["AWS throttles requests. Try again in a minute."]
    if code.startswith("ExpiredToken"):
        return ["Sign in again, and repeat the command."]
    check = f"Check the credentials, the region, and --stage {stage}."
    if code.startswith("AccessDenied"):
        return ["The credentials do not have this permission. Ask for it if the account is right.", check]
    return [CLOCK, check] if code in _UNSIGNED else [check]


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


def print_lines(text: str) -> None:
    """Print a text of several lines unchanged."""
    for line in text.strip("\n").splitlines():
        print_line(line)


def ended(sentence: str) -> str:
    """Return a sentence with a final full stop, unless it already ends with a punctuation mark."""
    return sentence if sentence.endswith((".", "?", "!")) else f"{sentence}."


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


class Advance(Protocol):
    """Function that reports progress: the amount done, the total (None if unknown), and the name of the step
    (None if unchanged)."""

    def __call__(self, done: int, total: int | None = None, name: str | None = None) -> None: ...


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


def percent(part: float) -> str:
    """Format a share as a percentage: 0.0831 as `8.3%`. Shares below 1% have one more digit."""
    return f"{part:.2%}" if 0 < part < 0.01 else f"{part:.1%}"


def plain(text: str) -> Text:
    """Return untrusted text on one line: line breaks are replaced, so that the text cannot look like several
    entries."""
    return lines(text.replace("\n", "�"))


def lines(text: str) -> Text:
    """Return untrusted text with its line breaks, made safe to print."""
    return Text(printable(text))
