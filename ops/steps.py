"""How far a command is, for who looks on."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ops.screen import errors

Advance = Callable[[float], None]
"""Tells that so much more is done."""


class Steps:
    """Of nobody who looks on."""

    def step(self, what: str, total: int, done: int = 0) -> AbstractContextManager[Advance]:  # noqa: ARG002
        """One step of a run: what it is, of how much, and how much is done already."""
        return nullcontext(lambda _more: None)


@contextmanager
def bar(what: str, total: int, done: int = 0, *, quiet: bool) -> Iterator[Advance]:
    """A step as a bar on stderr, which goes with it."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=errors, disable=quiet, transient=True) as progress:
        task = progress.add_task(what, total=max(total, done), completed=done)
        yield lambda more: progress.advance(task, more)
