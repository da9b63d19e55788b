"""An import in a process of its own, which a test may kill: its mailbox is a file of one byte a row.

    python -m tests.support.ops.import_child FILE COUNTS [EVENT NUMBER]

The byte counts the puts of its row, and outlives the process. With an EVENT the process kills itself, with
no chance to tidy up, when it comes to that event for so many times: see `DEATHS`.
"""

import mmap
import os
import signal
import sys
import threading
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
from botocore.exceptions import ClientError

from mailroom_ops.imports.command import options_of
from mailroom_ops.imports.importing import Import, RefusedLines
from mailroom_ops.imports.items import LineFault
from mailroom_ops.imports.source import Source
from mailroom_ops.messages.items import Rules

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
DEATHS = ("put", "line refused")
"""put: it is in the mailbox, and nobody has noted it. line refused: it is in the list of refused lines."""


class Death:
    """Kills the process at the n-th of an event."""

    def __init__(self, event: str, number: int) -> None:
        self._event = event
        self._left = number
        self._lock = threading.Lock()  # several workers put, and the n-th must be one of them

    def at(self, event: str) -> None:
        """Such an event."""
        if event == self._event:
            with self._lock:
                self._left -= 1
                last = self._left == 0
            if last:
                os.kill(os.getpid(), signal.SIGINT if event == CTRL_C else signal.SIGKILL)


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
            error: Any = {"Error": {"Code": "ConditionalCheckFailedException"}, "ResponseMetadata": {}}
            error["Item"] = asked["Item"]
            raise ClientError(error, "PutItem")
        self._counts[row] += 1
        self._death.at("put")
        self._death.at(CTRL_C)


def main(file: Path, counts: Path, event: str = "", number: str = "0") -> None:
    """Import it; the answer goes to standard output."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in a script's background ignores Ctrl-C
    death = Death(event, int(number))
    _arm(death)
    options = options_of(file, channel="mail", id_prefix=None, maps=())
    with closing(Source(file)) as source, counts.open("r+b") as opened:
        client = StubDynamoDB(mmap.mmap(opened.fileno(), 0), death)
        session: Any = SimpleNamespace(client=lambda *_, **__: client, region_name="eu-central-1")
        answer = Import(source, session, "test", options, RULES, quiet=True).run(WORKERS)
    sys.stdout.write(msgspec.json.encode(answer).decode())


def _arm(death: Death) -> None:
    """Let a refused line be an event."""
    add = RefusedLines.add

    def adding(self: RefusedLines, fault: LineFault) -> None:
        add(self, fault)
        self._file.flush()  # the kernel has it, which outlives the process
        death.at("line refused")

    setattr(RefusedLines, "add", adding)  # noqa: B010 - mypy allows no method to be assigned


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
