"""One run of the command: the file, what is kept beside it, and the answer at the end."""

import time
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ops.campaigns.samples import Samples
from ops.imports.answer import Imported, Shown, counts_of, shown
from ops.imports.asked import Asked, asked_of
from ops.imports.bar import Bar
from ops.imports.brake import Brake
from ops.imports.entries import Entries
from ops.imports.importing import SHOWN_FAULTS, Ended, Import, State
from ops.imports.items import Items
from ops.imports.judge import Fault, Judge
from ops.imports.options import Options
from ops.imports.progress import Counts, Progress
from ops.imports.progress_file import ProgressFile
from ops.imports.rejected import Rejected, path_of
from ops.imports.source import Source
from ops.messages.items import Rules
from ops.screen import Refused
from stacks.paths import TEMPLATES

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_s3 import S3Client

SAMPLES = 3


class Running(Struct):
    """An import that is ready to run."""

    importing: Import
    progress: Progress
    brake: Brake
    bar: Bar
    resumed: bool


class Job:
    """A file for a stage. Raises Refused where the file, or its columns, cannot be meant."""

    def __init__(self, source: Source, stage: str, options: Options, rules: Rules, s3: "S3Client") -> None:
        self._source = source
        self._stage = stage
        self._options = options
        self._rules = rules
        self._s3 = s3
        self._entries = Entries(source, options)
        self._items = items = Items(options, rules.lanes)
        if options.format == "csv":
            items.check_header(self._entries.header)
        self._judge = Judge(options, items, rules.validator(s3))
        self._file = ProgressFile(source.path)
        self._began = time.monotonic()

    def prepared(
        self, dynamodb: "DynamoDBClient", workers: int, *, restart: bool = False, quiet: bool = True
    ) -> Running:
        """Find out how far it is. Raises Refused where that cannot be told, or another process is on it."""
        self._source.lock()
        asked = asked_of(self._source, self._rules.payload_bucket, self._options, self._entries, self._items)
        progress, resumed = self._progress(asked, restart)
        brake = Brake(self._rules.writer(dynamodb, self._s3))
        bar = Bar(self._source.size, progress.offset, quiet=quiet)
        importing = Import(
            self._entries,
            self._judge,
            brake,
            progress,
            file=self._file,
            rejected=Rejected(self._source, self._options, self._entries),
            consumed=lambda offset: self._unchanged(asked, offset),
            workers=workers,
            seen=lambda so_far: bar.seen(so_far.offset, so_far.counts.lines, brake.wait),
        )
        return Running(importing, progress, brake, bar, resumed)

    def run(self, running: Running) -> Imported:
        """Import it. Raises Refused where the files beside it cannot be written, or it has changed."""
        before = running.progress.counts.lines
        with running.bar.progress:
            ended = running.importing.run()
        if ended.state == "done":
            self._file.remove()
        return self._answer(running, ended, running.progress.counts.lines - before)

    def dry_run(self, *, quiet: bool = True) -> Imported:
        """Judge every line and render the first three messages. Nothing is put or written."""
        counts, faults, samples = Counts(), list[Fault](), list[dict[str, Any]]()
        bar = Bar(self._source.size, self._entries.start.offset, quiet=quiet)
        with bar.progress:
            for entry in self._entries.after(self._entries.start):
                item = self._judge.item(entry)
                if isinstance(item, Fault):
                    counts.refused += 1
                    faults += [item] if len(faults) < SHOWN_FAULTS else []
                else:
                    counts.put += 1
                    samples += [item] if len(samples) < SAMPLES else []
                bar.seen(entry.end.offset, counts.lines)
        rendering = Samples(TEMPLATES, self._rules.default_region)
        return self._said(
            "done",
            counts,
            dry_run=True,
            faults=faults,
            samples=[shown(rendering.render(each)) for each in samples],
            bytes_done=self._source.size,
        )

    def _unchanged(self, asked: Asked, offset: int) -> str:
        if self._source.touched():
            raise self._file.changed(asked)
        return asked.consumed(offset)

    def _progress(self, asked: Asked, restart: bool) -> tuple[Progress, bool]:
        """Where to begin, and whether that is where another process was cut off."""
        rejected = path_of(self._source.path, self._options)
        if restart:
            self._file.forget(asked)
            rejected.unlink(missing_ok=True)
        found = self._file.known(asked)
        if found is not None:
            return found, True
        if rejected.exists():
            raise Refused(
                f"{rejected} is there from an import before; move it away, or let --restart delete it."
            )
        return asked.first(self._entries.start), False

    def _answer(self, running: Running, ended: Ended, lines: int) -> Imported:
        rejected = path_of(self._source.path, self._options)
        left = ended.state != "done"
        return self._said(
            ended.state,
            running.progress.counts,
            dry_run=False,
            faults=ended.faults,
            bytes_done=running.progress.offset,
            done=lines - running.progress.counts.failed,
            resumed=running.resumed,
            throttled=running.brake.throttled,
            rejected_file=str(rejected) if rejected.exists() else None,
            trouble=ended.trouble,
            resume="The same command goes on where it was; nothing is put twice." if left else "",
        )

    def _said(
        self,
        state: State,
        counts: Counts,
        *,
        dry_run: bool,
        faults: list[Fault],
        bytes_done: int,
        samples: list[Shown] | None = None,
        done: int = 0,
        **more: Any,
    ) -> Imported:
        seconds = time.monotonic() - self._began
        return Imported(
            file=str(self._source.path),
            stage=self._stage,
            event_type=self._options.channel,
            dry_run=dry_run,
            state=state,
            bytes=self._source.size,
            bytes_done=bytes_done,
            seconds=round(seconds, 3),
            lines_per_second=round(done / seconds, 1) if seconds else 0.0,
            faults=faults,
            samples=samples or [],
            **{**counts_of(counts), **more},
        )
