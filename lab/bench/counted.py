"""Calls of AWS, write units and log lines for each mail, counted from the requests of the functions; and the
work of the interpreter: function calls, opened files and, at a cold start, imported modules."""

import re
import subprocess
import sys
from collections import Counter
from logging.handlers import BufferingHandler
from pathlib import Path
from typing import Any

from lab import REPOSITORY, size
from lab.bench import cpu
from lab.bench.functions import (
    answer_at_once,
    clean,
    context,
    in_a_process,
    queue_batch,
    report,
    stream_batch,
)
from mailroom.aws.dynamo_values import size_of

MAILS = size(1000, 100)


def mails() -> dict[str, Any]:
    """Return the number of calls for each mail, also by operation, and the ledger's write units and log lines
    for each mail."""
    counted = in_a_process("lab.bench.counted", "mails")
    calls = counted["calls"]
    return {
        "calls_per_mail": round(sum(calls.values()) / MAILS, 3),
        "calls_by_name": {name: round(number / MAILS, 3) for name, number in sorted(calls.items())},
        "write_units_per_mail": round(counted["units"] / MAILS, 3),
        "log_lines_per_mail": round(counted["log_lines"] / MAILS, 3),
        "ledger_item_bytes": counted["item_bytes"],
    }


class LedgerSize:
    """Computes the write units of the ledger from the writes to its items: for each write, the size of all
    attributes that were written to the item so far, rounded up to KiB. Removed attributes still count."""

    def __init__(self, client: Any) -> None:
        self.units = 0
        self.largest = 0
        self._items: dict[str, dict[str, Any]] = {}
        for operation, take in (("UpdateItem", self._update), ("BatchExecuteStatement", self._insert)):
            client.meta.events.register(
                f"provide-client-params.dynamodb.{operation}", lambda params, take=take, **_: take(params)
            )

    def _update(self, request: dict[str, Any]) -> None:
        """Count an UpdateItem of the ledger, with the values that it sets and adds."""
        if request["TableName"] != "ledger":
            return
        names, values = request.get("ExpressionAttributeNames", {}), request["ExpressionAttributeValues"]
        written = re.findall(r"(#?\w+) (?:= )?(:\w+)", request["UpdateExpression"])
        self._write({**request["Key"], **{names.get(name, name): values[value] for name, value in written}})

    def _insert(self, request: dict[str, Any]) -> None:
        """Count INSERT statements, in which each attribute is a parameter."""
        for statement in request["Statements"]:
            self._write(
                dict(
                    zip(
                        re.findall(r"'(\w+)': \?", statement["Statement"]),
                        statement["Parameters"],
                        strict=True,
                    )
                )
            )

    def _write(self, sets: dict[str, Any]) -> None:
        item = self._items.setdefault(sets["id"]["S"], {})
        item |= sets
        size = size_of(item)
        self.largest = max(self.largest, size)
        self.units += -(-size // 1024)


def _count_mails() -> dict[str, Any]:
    """Process mails with dispatch and the sender, and return the counts."""
    from mailroom.aws import clients
    from mailroom.telemetry import logger

    lines = BufferingHandler(sys.maxsize)
    logger.addHandler(lines)
    calls: Counter[str] = Counter()
    dynamodb = clients.dynamodb()
    size = LedgerSize(dynamodb)
    answer_at_once(dynamodb, clients.sqs(), clients.sesv2(10.0), clients.s3(), calls=calls)
    import dispatch
    import send_mail

    for first in range(0, MAILS, 100):
        dispatch.handler(stream_batch(first), context())
    for first in range(0, MAILS, 10):
        send_mail.handler(queue_batch(first), context())
    written = len(lines.buffer)
    return {"calls": calls, "units": size.units, "item_bytes": size.largest, "log_lines": written}


def interpreter(level: str) -> dict[str, float]:
    """Return the function calls and the opened files of each mail, by a warm sender at a level of cpu.py."""
    counted: dict[str, float] = in_a_process("lab.bench.counted", level, **cpu.variables(level))
    return counted


def _count_interpreter(level: str) -> dict[str, float]:
    handler, invocation = cpu.mailroom(level), context()
    batches = [queue_batch(first) for first in range(0, 300, 10)]
    counts: Counter[str] = Counter()

    def send(first: int) -> None:
        for batch in batches[first : first + 10]:
            handler(batch, invocation)

    send(0)
    sys.setprofile(lambda _frame, event, _argument: counts.update((event,)))
    send(10)
    sys.setprofile(None)
    # Only now, because the interpreter would count the calls of the hook, too. A hook cannot be removed.
    sys.addaudithook(lambda event, _arguments: counts.update((event,)))
    send(20)
    Path(__file__).open().close()  # an additional file, so that a hook that counts no files is noticed
    return {"calls": (counts["call"] + counts["c_call"]) / 100, "files": (counts["open"] - 1) / 100}


def modules(handler: str) -> int:
    """Return the number of modules that a function's handler loads, as the first import of a new process."""
    script = f"import sys; before = {{*sys.modules}}; import {handler}; print(len({{*sys.modules}} - before))"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=REPOSITORY, env=clean(), capture_output=True, text=True, check=True)
    return int(done.stdout.split()[-1])


if __name__ == "__main__":
    report(_count_mails() if sys.argv[1] == "mails" else _count_interpreter(sys.argv[1]))
