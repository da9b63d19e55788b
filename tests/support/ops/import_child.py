"""An import in a process of its own, which a test may kill: its mailbox is a file of one byte a row.

    python -m tests.support.ops.import_child FILE COUNTS [EVENT NUMBER]

The byte counts the puts of its row, and outlives the process. With an EVENT the process kills itself, with
no chance to tidy up, when it comes to that event for so many times: see `DEATHS`. NOTED_EVERY in the
environment is how often it notes its progress, in seconds.
"""

import mmap
import os
import signal
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
from botocore.exceptions import ClientError

from mailroom.campaigns.file_formats import FileEntry
from ops.imports import importing
from ops.imports.command import options_of
from ops.imports.progress import RejectedLines
from ops.imports.source import Source
from ops.messages.items import Rules

WORKERS = 4
RULES = Rules(
    mailbox_table="mailbox",
    payload_bucket="mailroom-test-payloads",
    lanes={"mail": ["normal", "bulk"]},
    callback_schemes=["https"],
    callback_ports=[443],
)
CTRL_C = "Ctrl-C"
"""No death: a put after which somebody wants the import to end."""
DEATHS = ("put", "progress written", "progress in place", "line refused")
"""put: it is in the mailbox, and nobody has noted it. progress written: to its draft, which is not yet in
place. progress in place: just so. line refused: it is in the file of refused lines, and nobody has noted
it."""


class Death:
    """Kills the process at the n-th of an event."""

    def __init__(self, event: str, number: int) -> None:
        self._event = event
        self._left = number
        self.instead: Callable[[], None] | None = None

    def at(self, event: str) -> None:
        """Such an event."""
        if event == self._event:
            self._left -= 1
            if self._left == 0 and self.instead is not None:
                self.instead()
            elif self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


class StubDynamoDB:
    """PutItem on a file of one byte a row; it forgets nothing, and holds nothing in memory."""

    def __init__(self, counts: mmap.mmap, death: Death) -> None:
        self._counts = counts
        self._death = death

    def put_item(self, **asked: Any) -> None:
        """Count the row, under the condition that it was not."""
        row = int(asked["Item"]["id"]["S"].partition("-")[2])
        conditional = asked.get("ConditionExpression") == "attribute_not_exists(id)"
        if conditional and self._counts[row]:
            error: Any = {"Error": {"Code": "ConditionalCheckFailedException"}, "Item": asked["Item"]}
            raise ClientError(error, "PutItem")
        self._counts[row] += 1
        self._death.at("put")
        self._death.at(CTRL_C)


def main(file: Path, counts: Path, event: str = "", number: str = "0") -> None:
    """Import it, from where it is; the answer goes to standard output."""
    death = Death(event, int(number))
    _arm(death)
    importing.NOTED_EVERY = float(os.environ.get("NOTED_EVERY", importing.NOTED_EVERY))
    words: dict[str, Any] = dict.fromkeys(("format_", "delimiter", "id_prefix", "id_column"))
    options = options_of(file, channel="mail", sets=["subject=Hello", "text=Hi"], maps=(), only=(), **words)
    with closing(Source(file)) as source, counts.open("r+b") as opened:
        mailbox = mmap.mmap(opened.fileno(), 0)
        client: Any = StubDynamoDB(mailbox, death)
        job = importing.Job(source, "test", options, RULES, client)
        running = importing.Import(job, client, WORKERS)
        if event == CTRL_C:
            death.instead = running.stop
        answer = running.run()
    sys.stdout.write(msgspec.json.encode(answer).decode())


def _arm(death: Death) -> None:
    """Let the files' own steps be events."""
    replace, add = Path.replace, RejectedLines.add

    def replacing(self: Path, target: Any) -> Path:
        death.at("progress written")
        moved = replace(self, target)
        death.at("progress in place")
        return moved

    def adding(self: RejectedLines, entry: FileEntry, reason: str) -> None:
        add(self, entry, reason)
        self._file.flush()  # the kernel has it, which outlives the process
        death.at("line refused")

    setattr(Path, "replace", replacing)  # noqa: B010 - mypy allows no method to be assigned
    setattr(RejectedLines, "add", adding)  # noqa: B010


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
