"""CPU time a mail: our worker beside Powertools' batch and idempotency, with clients stubbed.

At the level `method` the request is trivial, and the figure is what the two libraries do around it. At `mail`
the mail is rendered as well, and at `http` botocore does its part too. The two run in turn, each first as
often as the other, in processes of their own. The least of many short runs counts, because other load only
ever adds. A run begins without garbage, and what it makes itself is collected as in any process.
"""

import gc
import importlib
import os
import sys
import time
from typing import Any

from lab import SHORT, size
from lab.bench.functions import Methods, answer_at_once, context, in_a_process, queue_batch, report

MAILS = size(300, 10)
RUNS = size(5, 1)
"""Short ones of each process; one more warms it up."""
ROUNDS = size(10, 1)
"""Processes of each sender."""
LEVELS = ("method", "http") if SHORT else ("method", "mail", "http")


def measure() -> dict[str, Any]:
    """The figures, in microseconds a mail, and the ratios ours / powertools."""
    figures: dict[str, Any] = {}
    for level in LEVELS:
        runs: dict[str, list[float]] = {"mailroom": [], "powertools": []}
        for number in range(ROUNDS):
            for sender in sorted(runs, reverse=number % 2 == 1):
                runs[sender].append(in_a_process("lab.bench.cpu", sender, level))
        for sender, counts in runs.items():
            figures[f"cpu_us_{level}_{sender}"] = round(min(counts), 1)
        figures[f"cpu_ratio_{level}"] = round(min(runs["mailroom"]) / min(runs["powertools"]), 3)
    return figures


class _Trivial:
    """An adapter that makes the smallest request."""

    provider = "ses"
    account = ""

    def __init__(self, client: Any) -> None:
        from mailroom.message.message import Message

        class Bare(Message, frozen=True, kw_only=True):
            recipient = "reader@example.com"

        self.contract = Bare
        self._client = client

    def open(self) -> "_Trivial":
        return self

    def prepare(self, message: Any) -> dict[str, Any]:
        return {"Content": message}

    def submit(self, request: dict[str, Any]) -> Any:
        from mailroom.message.outcome import Sent

        return Sent(self._client.send_email(**request)["MessageId"])


def _mailroom(level: str) -> Any:
    from mailroom.aws import clients

    if level == "http":
        answer_at_once(clients.dynamodb(), clients.sesv2(10.0))
    else:
        setattr(clients, "dynamodb", Methods)  # noqa: B010 - the type is another on purpose
        setattr(clients, "sesv2", lambda _seconds: Methods())  # noqa: B010
    module: Any = importlib.import_module("send_mail")
    if level == "method":
        from mailroom.delivery.delivery import to_people
        from mailroom.delivery.worker import Worker

        # `_Trivial` lacks `look_up`, because no outcome is unknown in this benchmark.
        trivial: Any = _Trivial(Methods())
        module.worker = Worker.of(module.settings, trivial, to_people)
    return module.handler


def _powertools(level: str) -> Any:
    module: Any = importlib.import_module("lab.bench.powertools_sender")
    if level == "http":
        answer_at_once(module.layer.client, module.adapter._client)
    else:
        module.layer.client = Methods()
        module.adapter._client = Methods()
    if level == "method":
        module.adapter = _Trivial(Methods())
        module.parse = lambda mail, _contracts: mail
    return module.handler


def _microseconds(sender: str, level: str) -> float:
    """Return the least microseconds per mail among a sender's runs at one level in this process."""
    handler = {"mailroom": _mailroom, "powertools": _powertools}[sender](level)
    # The functions write their log lines to standard output, which is discarded.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    _run(handler, 0)
    return min(_run(handler, number) for number in range(1, 1 + RUNS)) / MAILS * 1e6


def _run(handler: Any, number: int) -> float:
    """Seconds of CPU time for new mails."""
    events = [queue_batch(first) for first in range(number * MAILS, (number + 1) * MAILS, 10)]
    gc.collect()
    started = time.process_time()
    for event in events:
        answer = handler(event, context())
        if answer["batchItemFailures"]:
            raise RuntimeError(f"the sender failed: {answer}")
    return time.process_time() - started


if __name__ == "__main__":
    report(_microseconds(sys.argv[1], sys.argv[2]))
