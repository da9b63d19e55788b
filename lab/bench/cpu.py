"""CPU time for each mail: Mailroom's worker compared with Powertools' batch and idempotency utilities, with
stubbed clients.

At the level `method` the request is trivial, so the figure is the work of the two libraries. At `mail`, the
mail is rendered as well, with templates as in a bundle, and at `http`, the work of botocore is included too.
At `local`, Mailroom alone renders as in the local stage, which reads changed templates again. The two senders
run alternately in processes of their own, and each runs first equally often. The lowest of many short runs is
used, because other load can only increase the time. Before a run, garbage is collected; garbage of the run
itself is collected as in any process.
"""

import gc
import importlib
import os
import sys
import time
from typing import Any

from lab import REPOSITORY, SHORT, size
from lab.bench.functions import Methods, answer_at_once, context, in_a_process, queue_batch, report

MAILS = size(300, 10)
RUNS = size(5, 1)
"""Number of short runs in each process, after one to warm up."""
ROUNDS = size(10, 1)
"""Number of processes of each sender."""
SENDERS = ("mailroom", "powertools")
LEVELS = {"method": SENDERS, "mail": SENDERS, "local": SENDERS[:1], "http": SENDERS}
"""Senders that are measured at each level."""


def measure() -> dict[str, Any]:
    """Return the CPU time of a mail in microseconds, by level and sender, and the ratios of Mailroom to
    Powertools."""
    figures: dict[str, Any] = {}
    for level in ("method", "http") if SHORT else LEVELS:
        runs: dict[str, list[float]] = {sender: [] for sender in LEVELS[level]}
        for number in range(ROUNDS):
            for sender in sorted(runs, reverse=number % 2 == 1):
                runs[sender].append(in_a_process("lab.bench.cpu", sender, level, **variables(level)))
        for sender, counts in runs.items():
            figures[f"cpu_us_{level}_{sender}"] = round(min(counts), 1)
        if level != "local":
            figures[f"cpu_ratio_{level}"] = round(min(runs["mailroom"]) / min(runs["powertools"]), 3)
    return figures


def variables(level: str) -> dict[str, str]:
    """Return the variables of the environment at a level. The local stage's templates have an absolute path,
    which is outside of a bundle."""
    return {"TEMPLATES": str(REPOSITORY / "templates" / "mail")} if level == "local" else {}


class _Trivial:
    """An adapter that sends the smallest possible request."""

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


def mailroom(level: str) -> Any:
    """Return the handler of Mailroom's sender at a level."""
    from mailroom.aws import clients

    if level == "http":
        answer_at_once(clients.dynamodb(), clients.sesv2(10.0))
    else:
        setattr(clients, "dynamodb", Methods)  # noqa: B010 - the type differs on purpose
        setattr(clients, "sesv2", lambda _seconds: Methods())  # noqa: B010
    module: Any = importlib.import_module("send_mail")
    if level == "method":
        from mailroom.delivery.delivery import to_people
        from mailroom.delivery.worker import Worker

        # `_Trivial` lacks `look_up`, because outcomes are never unknown in this benchmark.
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
    """Return the lowest CPU time for each mail, in microseconds, of a sender's runs at one level in this
    process."""
    handler = {"mailroom": mailroom, "powertools": _powertools}[sender](level)
    # The functions write their log lines to standard output, which is discarded.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    _run(handler, 0)
    return min(_run(handler, number) for number in range(1, 1 + RUNS)) / MAILS * 1e6


def _run(handler: Any, number: int) -> float:
    """Return the CPU time in seconds for sending MAILS new mails."""
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
