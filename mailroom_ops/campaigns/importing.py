"""The import of a file: its entries are put in order, by the Python client that producers use too."""

from collections import Counter, deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, get_args

from mailroom.campaigns.file_formats import FileEntry
from mailroom.client import Mailroom, SendResult
from mailroom.mailbox import DAY
from mailroom_ops.campaigns.import_report import Imported, State
from mailroom_ops.campaigns.import_source import FileEntries, Source
from mailroom_ops.campaigns.imported_items import ID, Items, LineFault, Options
from mailroom_ops.messages.items import Rules
from mailroom_ops.messages.rendered import Samples
from mailroom_ops.shared.screen import bar

if TYPE_CHECKING:
    import boto3

MAX_FAULTS = 1_000
"""Maximum number of faulty lines in the output: each line of a large file may have a fault."""
SAMPLES = 3
_MOVED = (
    "line {} has the id of another message, and ids are made of line numbers: the file has changed since it "
    "was imported, or another file was imported with this --id-prefix. Restore the file, or put new lines "
    "into another file, and use another --id-prefix for it"
)


LineResult = Literal["put", "existed", "conflict", "refused", "failed"]
"""Result of a line. put: its message is in the mailbox now. existed: the mailbox had the same message.
conflict: another message has the id. refused: the line is faulty. failed: AWS refused the message, and the
import ended."""


class _Stopped(Exception):
    """Error that ends an import. Its text is the reason."""


class Import:
    """Import of one file into one stage. It always begins with the first line. A message is put only if its
    id is not in the mailbox yet, and the same file always makes the same ids, so a message that an earlier
    import has put is counted as existed. Raises Refused if the header cannot be parsed, or if its columns
    cannot make messages."""

    def __init__(
        self,
        source: Source,
        session: "boto3.Session",
        stage: str,
        options: Options,
        rules: Rules,
        *,
        quiet: bool,
    ) -> None:
        self._source = source
        self._session = session
        self._stage = stage
        self._rules = rules
        self._quiet = quiet
        self._entries = FileEntries(source, options)
        s3 = session.client("s3")
        self._previews = rules.previews(s3)
        self._items = Items(options, rules.lanes, rules.validator(s3), self._previews)
        if options.format == "csv":
            self._items.check_header(self._entries.header)
        self._counts: Counter[LineResult] = Counter()
        self._faults: list[LineFault] = []

    def dry_run(self) -> Imported:
        """Validate every line and render the first three messages, but put none."""
        samples = list[dict[str, Any]]()
        latest = deque[FileEntry](maxlen=1)
        with bar("checking", quiet=self._quiet) as advance:
            for item in self._good(latest):
                self._counts["put"] += 1
                samples += [item] if len(samples) < SAMPLES else []
                advance(latest[0].end.offset, self._source.size, f"checking, line {self._counts.total():,}")
        rendering = Samples(self._previews, self._rules.default_region)
        return self._answer("done", dry_run=True, samples=[rendering.render(item) for item in samples])

    def run(self, workers: int) -> Imported:
        """Put all messages, `workers` at a time. After Ctrl-C, the import ends once the puts under way are
        done."""
        state: State = "stopped"
        trouble = ""
        try:
            self._put(self._client(workers))
            state = "done"
        except _Stopped as why:
            trouble = str(why)
        except KeyboardInterrupt:
            state = "interrupted"
        return self._answer(state, trouble=trouble)

    def _client(self, workers: int) -> Mailroom:
        rules = self._rules
        return Mailroom(
            self._stage,
            self._session,
            payload_bucket=rules.payload_bucket,
            workers=workers,
            mailbox_days=int(rules.mailbox_ttl_seconds / DAY) or None,
            payload_days=int(rules.payload_ttl_seconds / DAY),
        )

    def _put(self, mailroom: Mailroom) -> None:
        under_way = deque[FileEntry]()
        with bar("importing", quiet=self._quiet) as advance:

            def settle(result: SendResult) -> None:
                entry = under_way.popleft()
                self._settle(entry, result)
                advance(entry.end.offset, self._source.size, f"importing, line {self._counts.total():,}")

            mailroom.send_many(self._good(under_way), on_result=settle)

    def _good(self, under_way: "deque[FileEntry]") -> Iterator[dict[str, Any]]:
        """Yield the valid items of the file, and append the entry of each to `under_way`. Faulty lines are
        counted and listed."""
        for entry in self._entries:
            item = self._items.judged(entry)
            if isinstance(item, LineFault):
                self._counts["refused"] += 1
                self._refuse(item)
            else:
                under_way.append(entry)
                yield item

    def _settle(self, entry: FileEntry, result: SendResult) -> None:
        self._counts["put" if result.state == "accepted" else result.state] += 1
        if result.state == "failed":
            raise _Stopped(f"AWS refused the messages: {result.error}")
        if result.state == "conflict" and ID not in (entry.values or {}):
            raise _Stopped(_MOVED.format(entry.begin.line))
        if not result.ok:
            field, _, problem = result.error.partition(": ")
            self._refuse(LineFault(entry.begin.line, field, problem))

    def _refuse(self, fault: LineFault) -> None:
        if len(self._faults) < MAX_FAULTS:
            self._faults.append(fault)

    def _answer(self, state: State, *, dry_run: bool = False, **more: Any) -> Imported:
        counts: dict[str, Any] = {name: self._counts[name] for name in get_args(LineResult)}
        return Imported(
            file=str(self._source.path),
            stage=self._stage,
            dry_run=dry_run,
            state=state,
            lines=self._counts.total(),
            **counts,
            bytes=self._source.size,
            faults=self._faults,
            **more,
        )
