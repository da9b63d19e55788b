"""One progress bar, on stderr, that is told how much more is done."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ops.screen import errors

Advance = Callable[[float], None]
"""Takes how much more is done."""


@contextmanager
def bar(what: str, total: int, *, quiet: bool) -> Iterator[Advance]:
    """One step of a command, and of how much it is; the bar goes with it."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=errors, disable=quiet, transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda more: progress.advance(task, more)
