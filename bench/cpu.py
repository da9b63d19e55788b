"""CPU time a mail: our worker against Powertools' batch and idempotency, clients stubbed at two levels.

At the method level the request is trivial as well, so that what is measured is what the two libraries do
around it; at the HTTP level the whole mail is made, with botocore's part. The two run in turn, in processes
of their own; the least of several runs counts, because other load only ever adds.
"""

import importlib
import json
import os
import subprocess
import sys
import time
from typing import Any

from bench import REPOSITORY
from bench.environment import clean
from bench.events import Context, queue_batch
from bench.stubs import Methods, answer_at_once

BATCHES = 150
ROUNDS = 5


def measure() -> dict[str, Any]:
    """The figures, in microseconds a mail, and the ratios ours / powertools."""
    figures: dict[str, Any] = {}
    for level in ("method", "mail", "http"):
        runs: dict[str, list[float]] = {"mailroom": [], "powertools": []}
        for _ in range(ROUNDS):
            for sender, seen in runs.items():
                seen.append(_run(sender, level))
        for sender, seen in runs.items():
            figures[f"cpu_us_{level}_{sender}"] = round(min(seen), 1)
        figures[f"cpu_ratio_{level}"] = round(min(runs["mailroom"]) / min(runs["powertools"]), 3)
    return figures


def _run(sender: str, level: str) -> float:
    command = [sys.executable, "-m", "bench.cpu", sender, level]
    done = subprocess.run(command, cwd=REPOSITORY, env=clean(), capture_output=True, text=True, check=True)
    return float(json.loads(done.stderr.splitlines()[-1])["microseconds"])


class _Trivial:
    """An adapter that makes the smallest request."""

    provider = "ses"

    def __init__(self, client: Any) -> None:
        from mailroom.message.message import Message

        class Bare(Message, frozen=True, kw_only=True):
            recipient = "reader@example.com"

        self.contract = Bare
        self._client = client

    def prepare(self, message: Any) -> dict[str, Any]:
        return {"Content": message}

    def submit(self, request: dict[str, Any]) -> Any:
        from mailroom.message.outcome import Sent

        return Sent(self._client.send_email(**request)["MessageId"])


def _mailroom(level: str) -> Any:
    from mailroom.aws import clients

    if level == "http":
        for client in (clients.dynamodb(), clients.sesv2(10.0)):
            answer_at_once(client)
    else:
        setattr(clients, "dynamodb", Methods)  # noqa: B010 - the type is another on purpose
        setattr(clients, "sesv2", lambda _seconds: Methods())  # noqa: B010
    module: Any = importlib.import_module("send_mail")
    if level == "method":
        from mailroom.delivery.delivery import to_people
        from mailroom.delivery.worker import Worker

        trivial: Any = _Trivial(Methods())  # no look_up: nothing is ever unknown here
        module.worker = Worker.of(module.settings, trivial, to_people)
    return module.handler


def _powertools(level: str) -> Any:
    module: Any = importlib.import_module("bench.powertools_sender")
    if level == "http":
        for client in (module.layer.client, module.adapter._client):
            answer_at_once(client)
    else:
        module.layer.client = Methods()
        module.adapter._client = Methods()
    if level == "method":
        trivial = _Trivial(Methods())
        module.adapter = trivial
        module.parse = lambda mail, _contracts: mail
    return module.handler


def main(sender: str, level: str) -> None:
    """Measure one sender at one level in this process, and say so on standard error."""
    handler = {"mailroom": _mailroom, "powertools": _powertools}[sender](level)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the functions' own log lines
    events = [queue_batch(number * 10) for number in range(BATCHES + 20)]
    for event in events[:20]:
        handler(event, Context())
    started = time.process_time()
    for event in events[20:]:
        answer = handler(event, Context())
        if answer["batchItemFailures"]:
            raise RuntimeError(f"{sender} failed: {answer}")
    spent = (time.process_time() - started) / (BATCHES * 10)
    print(json.dumps({"microseconds": spent * 1e6}), file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
