"""The import itself: entries in the file's order, some puts at a time, and a note of how far all are done."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Literal

from msgspec import Struct

from mailroom.mailbox import PutResult
from ops.imports.brake import STOPPED, Brake
from ops.imports.entries import Entries, Entry
from ops.imports.judge import Fault, Judge
from ops.imports.progress import Progress
from ops.imports.progress_file import ProgressFile
from ops.imports.rejected import Rejected

NOTED_EVERY = 1.0
"""Seconds from one note of the progress to the next: so much is put again, and found there, after a crash."""
AHEAD = 4
"""Entries that wait for each worker: so many at most lie in the memory."""
SHOWN_FAULTS = 20
CONFLICT = "is used for another message; use a new one"

State = Literal["done", "interrupted", "stopped"]
Seen = Callable[[Progress], None]


class Ended(Struct):
    """How it ended. interrupted: an operator did not want to wait. stopped: AWS did not take what it was
    given; `trouble` says how. `faults` are the first of this process."""

    state: State
    faults: list[Fault]
    trouble: str = ""


class _Begun(Struct):
    """An entry on its way: the fault that keeps it from being put, or the put."""

    entry: Entry
    fault: Fault | None = None
    put: Future[PutResult] | None = None


class Import:
    """One process's part of an import, from `progress` on, which it moves. `consumed` tells SHA-256 of the
    file up to an offset, and raises Refused where somebody has written into it. `stop` may be called at any
    time, also by the handler of a signal."""

    def __init__(
        self,
        entries: Entries,
        judge: Judge,
        brake: Brake,
        progress: Progress,
        *,
        file: ProgressFile,
        rejected: Rejected,
        consumed: Callable[[int], str],
        workers: int,
        seen: Seen,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._entries = entries
        self._judge = judge
        self._brake = brake
        self._progress = progress
        self._file = file
        self._rejected = rejected
        self._consumed = consumed
        self._workers = workers
        self._seen = seen
        self._now = now
        self._noted = now()
        self._interrupted = False
        self._ended = Ended("done", [])

    def stop(self) -> None:
        """End soon: what is under way is finished, and nothing more begun."""
        self._interrupted = True
        self._brake.stop()

    def run(self) -> Ended:
        """Until the file's end, or until it must end. Raises Refused where the files beside it cannot be
        written, or somebody has written into it."""
        self._progress.counts.failed = 0
        self._rejected.begin(self._progress.rejected_bytes)
        self._note()
        try:
            with ThreadPoolExecutor(self._workers, thread_name_prefix="put") as pool:
                try:
                    for begun in self._under_way(pool):
                        self._settle(begun)
                finally:
                    self._brake.stop()
            self._note()
        finally:
            self._rejected.close()
        if self._interrupted:
            self._ended.state = "interrupted"
        return self._ended

    def _under_way(self, pool: ThreadPoolExecutor) -> Iterator[_Begun]:
        """Each entry in order, when the puts of those before it have been settled."""
        window: deque[_Begun] = deque()
        for entry in self._entries.after(self._progress.mark):
            if self._interrupted or self._ended.state == "stopped":
                break
            window.append(self._begin(pool, entry))
            if len(window) > self._workers * AHEAD:
                yield window.popleft()
        yield from window

    def _begin(self, pool: ThreadPoolExecutor, entry: Entry) -> _Begun:
        item = self._judge.item(entry)
        if isinstance(item, Fault):
            return _Begun(entry, fault=item)
        return _Begun(entry, put=pool.submit(self._brake.put, item))

    def _settle(self, begun: _Begun) -> None:
        """Count one entry and move on behind it; behind one that failed nothing counts any more, for the
        import goes on there."""
        counts = self._progress.counts
        written = begun.put.result() if begun.put is not None else None
        if written is not None and written.state == "failed":
            self._halt(written.error)
        if self._ended.state == "stopped":
            return
        fault = begun.fault if written is None else self._count(begun.entry, written)
        if fault is not None:
            self._rejected.add(begun.entry, fault.reason)
            if written is None or written.state == "refused":
                counts.refused += 1
            if len(self._ended.faults) < SHOWN_FAULTS:
                self._ended.faults.append(fault)
        self._progress.offset, self._progress.line = begun.entry.end.offset, begun.entry.end.line
        if self._now() - self._noted >= NOTED_EVERY:
            self._note()
        self._seen(self._progress)

    def _halt(self, error: str) -> None:
        self._ended.state = "stopped"
        if error != STOPPED:
            self._progress.counts.failed += 1
            self._ended.trouble = self._ended.trouble or error

    def _count(self, entry: Entry, written: PutResult) -> Fault | None:
        counts: Any = self._progress.counts
        match written.state:
            case "put":
                counts.put += 1
            case "existed" if written.same:
                counts.existed += 1
            case "existed":
                counts.conflict += 1
                return self._judge.fault(entry, "id", CONFLICT)
            case _:
                return self._judge.fault(entry, written.field, written.problem)
        return None

    def _note(self) -> None:
        self._progress.rejected_bytes = self._rejected.settle()
        self._progress.consumed = self._consumed(self._progress.offset)
        self._file.write(self._progress)
        self._noted = self._now()
