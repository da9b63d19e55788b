"""Mails per second of function time. The deployed sender runs in a process of its own against stand-ins of
DynamoDB, SES and SQS, which respond after a fixed time. The figures for other memory sizes are computed from
the CPU time of a mail."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lab import SHORT, size
from lab.bench.functions import ANSWERS, context, in_a_process, queue_batch, report
from mailroom_local.providers.http import Reply, Request, SimulatorServer
from mailroom_ops.costs import prices
from mailroom_stacks.settings.times import WHOLE_VCPU_MB

MAILS = size(100, 10)
DELAYS_MS = {"aws": (5, 70, 8), "far": (20, 200, 20)}
"""Response times of DynamoDB, SES and SQS, in milliseconds."""
VARIANTS = {
    **{f"mailroom_{n}": ("send_mail", n) for n in ((10,) if SHORT else (1, 2, 5, 10))},
    "powertools": ("lab.bench.powertools_sender", 1),
    "pattern": ("lab.bench.handwritten_sender", 1),
}
FAR = ("mailroom_10",) if SHORT else ("mailroom_1", "mailroom_10", "powertools")
MEMORY_MB = (128, 256, 512, 1024, 1769)


def measure() -> dict[str, Any]:
    """Return the mails per second of function time and the CPU time of a mail. For each memory size, also
    return the cost of a million mails and the number of functions that send 1,000 mails per second."""
    results: dict[str, Any] = {}
    for name, delays in DELAYS_MS.items():
        with stand_ins(delays) as url:
            for variant, (module, at_once) in VARIANTS.items():
                if name == "far" and variant not in FAR:
                    continue
                variables = {"AWS_ENDPOINT_URL": url, "SUBMITS_AT_ONCE": str(at_once)}
                results.setdefault(variant, {})[name] = in_a_process("lab.bench.latency", module, **variables)
    usual = {variant: result["aws"] for variant, result in results.items()}
    return {
        "mails_a_function_second": {variant: result["a_second"] for variant, result in usual.items()},
        "mails_a_function_second_far": {variant: results[variant]["far"]["a_second"] for variant in FAR},
        "function_second_ratio": round(usual["mailroom_10"]["a_second"] / usual["powertools"]["a_second"], 2),
        "cpu_ms_a_mail": {variant: result["cpu_ms"] for variant, result in usual.items()},
        "by_memory": {
            variant: {str(mb): _at(mb, usual[variant], at_once) for mb in MEMORY_MB}
            for variant, (_, at_once) in VARIANTS.items()
        },
    }


def _at(memory_mb: int, results: dict[str, float], at_once: int) -> dict[str, float]:
    """Return the figures of a measured variant, computed for a memory size."""
    cpu = results["cpu_ms"] / 1000 / min(1, memory_mb / WHOLE_VCPU_MB)
    waits = max(0.0, at_once / results["a_second"] - results["cpu_ms"] / 1000)
    rate = min(at_once / (cpu + waits), 1 / cpu)
    dollars = memory_mb / 1024 * prices.LAMBDA_GB_SECOND / rate * 1e6
    return {
        "a_second": round(rate, 1),
        "dollars_a_million": round(dollars, 2),
        "functions_for_1000": round(1000 / rate, 1),
    }


class _StandIn:
    """Responds to each call of DynamoDB, SES or SQS after the time of the service."""

    prefix = "/"

    def __init__(self, delays_ms: tuple[int, int, int]) -> None:
        self._dynamodb, self._ses, self._sqs = (milliseconds / 1000 for milliseconds in delays_ms)

    def handle(self, request: Request) -> Reply:
        service, _, operation = request.headers.get("x-amz-target", ".SendEmail").rpartition(".")
        waits = {"": self._ses, "DynamoDB_20120810": self._dynamodb, "AmazonSQS": self._sqs}
        time.sleep(waits[service])
        return Reply(200, ANSWERS.get(operation, b"{}"), {"Content-Type": "application/json"})


@contextmanager
def stand_ins(delays_ms: tuple[int, int, int]) -> Iterator[str]:
    """Run a server that responds to calls of DynamoDB, SES and SQS after these times, and yield its URL."""
    server = SimulatorServer(0, _StandIn(delays_ms))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.url
    server.shutdown()
    thread.join()
    server.server_close()


def _send(module: str) -> dict[str, float]:
    """Warm up the sender, then send MAILS mails in batches of ten, and return the figures."""
    import importlib

    handler = importlib.import_module(module).handler
    handler(queue_batch(0), context())
    began, used = time.perf_counter(), time.process_time()
    for first in range(10, 10 + MAILS, 10):
        if handler(queue_batch(first), context())["batchItemFailures"]:
            raise RuntimeError("a record failed, so the figures would be wrong")
    seconds, cpu = time.perf_counter() - began, time.process_time() - used
    return {"a_second": round(MAILS / seconds, 1), "cpu_ms": round(cpu / MAILS * 1000, 2)}


if __name__ == "__main__":
    report(_send(sys.argv[1]))
