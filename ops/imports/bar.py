"""The bar of an import: bytes, lines, rate and the time that is left."""

import time
from collections.abc import Callable

from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from ops.screen import errors

_EVERY = 0.1
"""Seconds: more often nobody sees it, and thousands of lines a second would wait for it."""


class Bar:
    """On standard error; `quiet`: none."""

    def __init__(self, size: int, begin: int, *, quiet: bool, now: Callable[[], float] = time.monotonic):
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            DownloadColumn(binary_units=True),
            TextColumn("{task.fields[lines]:,} lines, {task.fields[rate]:,.0f} a second"),
            TimeRemainingColumn(),
        )
        self.progress = Progress(*columns, console=errors, disable=quiet, transient=True)
        self._task = self.progress.add_task("importing", total=size, completed=begin, lines=0, rate=0.0)
        self._now = now
        self._began = self._drawn = now()
        self._lines: int | None = None

    def seen(self, offset: int, lines: int, wait: float = 0.0) -> None:
        """So far it is; `wait` is for how long each put rests, in seconds, because DynamoDB throttles."""
        now = self._now()
        if self._lines is None:
            self._lines = lines
        if now - self._drawn < _EVERY:
            return
        self._drawn = now
        rate = (lines - self._lines) / max(now - self._began, _EVERY)
        words = f"importing (throttled: each put rests {wait:.2f} s)" if wait else "importing"
        self.progress.update(self._task, completed=offset, lines=lines, rate=rate, description=words)
