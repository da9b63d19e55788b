"""One progress bar, on stderr, that is told how far it is."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import Progress

from ops.screen import errors


@contextmanager
def bar(name: str, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Call it with how much is done, and of how much."""
    with Progress(console=errors, disable=quiet, transient=True) as progress:
        task = progress.add_task(name, total=None)

        def advance(done: int, total: int) -> None:
            progress.update(task, completed=done, total=max(done, total))

        yield advance
