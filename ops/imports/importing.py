"""The import itself: entries in the file's order, some puts at a time, and a note of how far all are done."""

import random
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event, Lock
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

from mailroom.campaigns.file_formats import FileEntry, Position
from mailroom.mailbox import MailboxWriter, PutResult
from ops.campaigns.dry_run import Samples
from ops.imports.answer import Imported, State, shown
from ops.imports.items import Items, LineFault, Options
from ops.imports.progress import ImportProgress, LineCounts, ProgressFile, RejectedLines
from ops.imports.source import FileEntries, Source
from ops.messages.items import Rules
from ops.screen import Refused, bar
from stacks.paths import TEMPLATES

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_s3 import S3Client

NOTED_EVERY = 1.0
"""Seconds from one note of the progress to the next: so much is put again, and found there, after a crash."""
AHEAD = 4
"""Entries that wait for each worker: so many at most lie in the memory."""
SHOWN_FAULTS = 20
SAMPLES = 3
FIRST_WAIT = 0.05
LONGEST_WAIT = 5.0
RECOVERY = 0.9
"""What a put that went well leaves of the wait before each."""
SMALL = 0.002
"""Seconds below which puts do not wait at all."""
GIVE_UP_AFTER = 120.0
"""Seconds from the first put that fails to one that goes well: beyond, it is no throttling but an outage."""
STOPPED = "stopped"
"""The error of what was not put because the import ends."""
_PASSING = frozenset(
    (
        *("ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded"),
        *("InternalServerError", "ServiceUnavailable", "InternalFailure", "RequestTimeout", "SlowDown"),
        *("EndpointConnectionError", "ConnectTimeoutError", "ReadTimeoutError", "ConnectionClosedError"),
        *("HTTPClientError", "ProxyConnectionError", "LimitExceededException", "503", "500"),
    )
)
"""What may be over in a moment: AWS's codes and botocore's errors, as MailboxWriter names them."""


class Job:
    """A file for a stage. Raises Refused where the file, or its columns, cannot be meant."""

    def __init__(
        self,
        source: Source,
        stage: str,
        options: Options,
        rules: Rules,
        s3: "S3Client",
        *,
        quiet: bool = True,
    ) -> None:
        self.source = source
        self.stage = stage
        self.options = options
        self.rules = rules
        self.s3 = s3
        self.quiet = quiet
        self.entries = FileEntries(source, options)
        self.items = Items(options, rules.lanes, rules.validator(s3))
        if options.format == "csv":
            self.items.check_header(self.entries.header)
        self._began = time.monotonic()

    def dry_run(self) -> Imported:
        """Judge every line and render the first three messages. Nothing is put or written."""
        counts, faults, samples = LineCounts(), list[LineFault](), list[dict[str, Any]]()
        with bar("checking", quiet=self.quiet) as advance:
            for entry in self.entries.after(self.entries.start):
                item = self.items.judged(entry)
                if isinstance(item, LineFault):
                    counts.refused += 1
                    faults += [item] if len(faults) < SHOWN_FAULTS else []
                elif item is None:
                    counts.left_out += 1
                else:
                    counts.put += 1
                    samples += [item] if len(samples) < SAMPLES else []
                advance(entry.end.offset, self.source.size, f"checking, {counts.lines:,} lines")
        rendering = Samples(TEMPLATES, self.rules.default_region)
        rendered = [shown(rendering.render(each)) for each in samples]
        return self.answer("done", counts, faults, self.source.size, dry_run=True, samples=rendered)

    def answer(
        self,
        state: State,
        counts: LineCounts,
        faults: list[LineFault],
        bytes_done: int,
        *,
        settled: int = 0,
        **more: Any,
    ) -> Imported:
        """The command's answer; `settled` are the lines that this process accounted for."""
        seconds = time.monotonic() - self._began
        return Imported(
            file=str(self.source.path),
            stage=self.stage,
            event_type=self.options.channel,
            state=state,
            lines=counts.lines,
            **structs.asdict(counts),
            bytes=self.source.size,
            bytes_done=bytes_done,
            seconds=round(seconds, 3),
            lines_per_second=round(settled / seconds, 1) if seconds else 0.0,
            faults=faults,
            **more,
        )


class _Begun(Struct):
    """An entry on its way: the fault that keeps it from being put, or the put; neither: it is left out."""

    entry: FileEntry
    fault: LineFault | None = None
    put: Future[PutResult] | None = None


class Import:
    """One process's part of an import, from where the one before was cut off. `stop` may be called at any
    time, also by the handler of a signal. Raises Refused where another process is on the file, or where the
    import cannot go on."""

    def __init__(self, job: Job, dynamodb: "DynamoDBClient", workers: int, *, restart: bool = False) -> None:
        job.source.lock()
        self._job = job
        self._workers = workers
        self._writer = PacedWriter(job.rules.writer(dynamodb, job.s3))
        self._rejected = RejectedLines(job.source, job.options, job.entries)
        self._file = ProgressFile(job.source.path)
        self._numbered = job.items.numbered(job.entries.columns())
        self._progress, self._resumed = self._found(restart)
        self._before = self._progress.counts.lines
        self._state: State = "done"
        self._interrupted = False
        self._faults: list[LineFault] = []
        self._trouble = ""
        self._noted = 0.0

    def stop(self) -> None:
        """End soon: what is under way is finished, and nothing more begun."""
        self._interrupted = True
        self._writer.stop()

    def run(self) -> Imported:
        """Import until the file's end, or until it is stopped. Raises Refused where the files beside it
        cannot be written, or somebody has written into it."""
        self._rejected.begin(self._progress.rejected_bytes)
        self._note()
        try:
            with (
                bar("importing", quiet=self._job.quiet) as advance,
                ThreadPoolExecutor(self._workers, thread_name_prefix="put") as pool,
            ):
                try:
                    for begun in self._under_way(pool):
                        self._settle(begun)
                        advance(self._progress.offset, self._job.source.size, self._doing())
                finally:
                    self._writer.stop()
            self._note()
        finally:
            self._rejected.close()
        if self._interrupted:
            self._state = "interrupted"
        if self._state == "done":
            self._file.path.unlink(missing_ok=True)
        return self._answer()

    def _found(self, restart: bool) -> tuple[ImportProgress, bool]:
        """Where to begin, and whether that is where another process was cut off."""
        job = self._job
        begin = ImportProgress(
            bucket=job.rules.payload_bucket,
            sha256=job.source.sha256(),
            options=job.options,
            offset=job.entries.start.offset,
            line=job.entries.start.line,
            counts=LineCounts(),
        )
        found = self._file.found(begin, numbered=self._numbered, restart=restart)
        if found is not None:
            found.counts.failed = 0
            return found, True
        if restart:
            self._file.path.unlink(missing_ok=True)
            self._rejected.path.unlink(missing_ok=True)
        elif self._rejected.path.exists():
            raise Refused(
                f"{self._rejected.path} is there from an import before; move it away, or let --restart "
                "delete it."
            )
        return begin, False

    def _under_way(self, pool: ThreadPoolExecutor) -> Iterator[_Begun]:
        """Each entry in order, when the puts of those before it have been settled."""
        window: deque[_Begun] = deque()
        for entry in self._job.entries.after(Position(self._progress.offset, self._progress.line)):
            if self._interrupted or self._state == "stopped":
                break
            item = self._job.items.judged(entry)
            if item is None or isinstance(item, LineFault):
                window.append(_Begun(entry, fault=item))
            else:
                window.append(_Begun(entry, put=pool.submit(self._writer.put, item)))
            if len(window) > self._workers * AHEAD:
                yield window.popleft()
        yield from window

    def _settle(self, begun: _Begun) -> None:
        """Count one entry and move on behind it; behind one that failed nothing counts any more, for the
        import goes on there."""
        progress, counts = self._progress, self._progress.counts
        outcome, fault = self._outcome(begun)
        if self._state == "stopped":
            return
        setattr(counts, outcome, getattr(counts, outcome) + 1)
        if fault is not None:
            self._rejected.add(begun.entry, fault.reason)
            if len(self._faults) < SHOWN_FAULTS:
                self._faults.append(fault)
        progress.offset, progress.line = begun.entry.end.offset, begun.entry.end.line
        if time.monotonic() - self._noted >= NOTED_EVERY:
            self._note()

    def _doing(self) -> str:
        wait, lines = self._writer.wait, f"importing, {self._progress.counts.lines:,} lines"
        return f"{lines} (throttled: each put rests {wait:.2f} s)" if wait else lines

    def _outcome(self, begun: _Begun) -> tuple[str, LineFault | None]:
        """The count that an entry belongs to, and why it was not put."""
        if begun.put is None:
            return "refused" if begun.fault else "left_out", begun.fault
        line, written = begun.entry.begin.line, begun.put.result()
        if written.state in ("refused", "conflict"):
            return written.state, self._job.items.fault(line, written.field, written.problem)
        if written.state == "failed":
            self._state = "stopped"
            if written.error != STOPPED:
                self._progress.counts.failed += 1
                self._trouble = self._trouble or written.error
        return "put" if written.state == "accepted" else written.state, None

    def _note(self) -> None:
        if self._job.source.touched():
            raise self._file.changed(numbered=self._numbered)
        self._progress.rejected_bytes = self._rejected.flush()
        self._file.write(self._progress)
        self._noted = time.monotonic()

    def _answer(self) -> Imported:
        rejected, counts = self._rejected.path, self._progress.counts
        left = self._state != "done"
        return self._job.answer(
            self._state,
            counts,
            self._faults,
            self._progress.offset,
            settled=counts.lines - self._before - counts.failed,
            dry_run=False,
            samples=[],
            resumed=self._resumed,
            throttled=self._writer.throttled,
            rejected_file=str(rejected) if rejected.exists() else None,
            trouble=self._trouble,
            resume="To go on, run the same command again; nothing is put twice." if left else "",
        )


class PacedWriter:
    """Puts at the pace that DynamoDB takes: slower for all workers at once when it throttles, faster again
    when it does not. `sleep` and `now` are in seconds."""

    def __init__(
        self,
        writer: MailboxWriter,
        *,
        sleep: Callable[[float], object] | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._writer = writer
        self._stopped = Event()
        self._sleep = sleep or self._stopped.wait
        self._now = now
        self._lock = Lock()
        self.wait = 0.0
        self.throttled = 0
        """How often DynamoDB, or the way to it, did not take a put for the moment."""
        self._slowed = now()
        self._failing_since: float | None = None
        """None: the last put went well, or there was none."""

    def stop(self) -> None:
        """No worker waits any longer: what was not put yet comes back as failed."""
        self._stopped.set()

    def put(self, item: Mapping[str, Any]) -> PutResult:
        """Put one item, as often as it takes; `failed`: trying again is of no use."""
        while not self._stopped.is_set():
            if wait := self.wait:
                self._sleep(wait * random.uniform(0.5, 1.5))  # noqa: S311 - it spreads, it hides nothing
            written = self._writer.put(item)
            if written.state != "failed":
                self._speed_up()
                return written
            if not self._may_pass(written):
                self.stop()
                return written
        return PutResult("failed", STOPPED)

    def _speed_up(self) -> None:
        with self._lock:
            self._failing_since = None
            self.wait = self.wait * RECOVERY if self.wait > SMALL else 0.0

    def _may_pass(self, written: PutResult) -> bool:
        if written.error.rpartition(": ")[2] not in _PASSING:
            return False
        with self._lock:
            self.throttled += 1
            now = self._now()
            if self._failing_since is None:
                self._failing_since = now
            # What several workers hear at once is one reason to slow down, and not several.
            if not self.wait or now - self._slowed >= self.wait:
                self.wait, self._slowed = min(LONGEST_WAIT, max(FIRST_WAIT, self.wait * 2)), now
            return now - self._failing_since < GIVE_UP_AFTER
