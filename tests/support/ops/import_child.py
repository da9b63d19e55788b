"""An import in a process of its own, which a test may kill: its mailbox is a file of one byte a row.

    python -m tests.support.ops.import_child FILE COUNTS [SIGNAL NUMBER]

The byte counts the puts of its row, and outlives the process. With a SIGNAL, such as SIGKILL, which leaves no
chance to tidy up, the process sends that signal to itself after so many puts.
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

from mailroom_ops.campaigns.import_command import options_of
from mailroom_ops.campaigns.import_source import Source
from mailroom_ops.campaigns.importing import Import
from mailroom_ops.messages.items import Rules

WORKERS = 4
RULES = Rules(
    mailbox_table="mailbox",
    payload_bucket="mailroom-test-payloads",
    lanes={"mail": ["normal", "bulk"]},
    callback_schemes=["https"],
    callback_ports=[443],
    payload_ttl_seconds=7_776_000,
)


class Death:
    """Sends the process a signal at the put of a number."""

    def __init__(self, signal_name: str, number: int) -> None:
        self._signal = signal.Signals[signal_name]
        self._left = number
        self._lock = threading.Lock()  # several workers put, and the last must be one of them

    def after_put(self) -> None:
        """Count a put that is not counted yet."""
        with self._lock:
            self._left -= 1
            last = self._left == 0
        if last:
            os.kill(os.getpid(), self._signal)


class StubDynamoDB:
    """PutItem on a file of one byte per row, without a copy in memory."""

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
        self._death.after_put()


def main(file: Path, counts: Path, signal_name: str = "SIGKILL", number: str = "0") -> None:
    """Import a file, and write the answer to standard output."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in a script's background ignores Ctrl-C
    death = Death(signal_name, int(number))
    options = options_of(file, channel="mail", id_prefix=None)
    with closing(Source(file)) as source, counts.open("r+b") as opened:
        client = StubDynamoDB(mmap.mmap(opened.fileno(), 0), death)
        session: Any = SimpleNamespace(client=lambda *_, **__: client, region_name="eu-central-1")
        answer = Import(source, session, "test", options, RULES, quiet=True).run(WORKERS)
    sys.stdout.write(msgspec.json.encode(answer).decode())


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
