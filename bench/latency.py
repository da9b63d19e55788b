"""Mails a function-second: the sender as it is deployed, in a process of its own, against stand-ins of
DynamoDB, SES and SQS that answer after a set time. What memory makes of it follows from the CPU time a mail.
"""

import asyncio
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench.functions import ANSWERS, context, in_a_process, queue_batch, report
from ops.estimates import prices
from ops.estimates.lanes import throughput
from ops.estimates.quotas import WHOLE_VCPU_MB

MAILS = 100
DELAYS_MS = {"aws": (5, 70, 8), "far": (20, 200, 20)}
"""DynamoDB's, SES's and SQS's answers, in milliseconds."""
VARIANTS = {
    **{f"mailroom_{n}": ("send_mail", n) for n in (1, 2, 5, 10)},
    "powertools": ("bench.powertools_sender", 1),
    "pattern": ("bench.handwritten_sender", 1),
}
FAR = ("mailroom_1", "mailroom_10", "powertools")
MEMORY_MB = (128, 256, 512, 1024, 1769)
_MEANS = {b"x-amz-target: dynamodb": 0, b"post /v2/email": 1}
_SQS = 2


def measure() -> dict[str, Any]:
    """Mails a function-second, CPU a mail, and by memory the rate and what a million mails cost."""
    found: dict[str, Any] = {}
    for name, delays in DELAYS_MS.items():
        with stand_ins(delays) as url:
            for variant, (module, at_once) in VARIANTS.items():
                if name == "far" and variant not in FAR:
                    continue
                variables = {"AWS_ENDPOINT_URL": url, "SUBMITS_AT_ONCE": str(at_once)}
                found.setdefault(variant, {})[name] = in_a_process("bench.latency", module, **variables)
    usual = {variant: each["aws"] for variant, each in found.items()}
    return {
        "mails_a_function_second": {variant: each["a_second"] for variant, each in usual.items()},
        "mails_a_function_second_far": {variant: found[variant]["far"]["a_second"] for variant in FAR},
        "function_second_ratio": round(usual["mailroom_10"]["a_second"] / usual["powertools"]["a_second"], 2),
        "cpu_ms_a_mail": {variant: each["cpu_ms"] for variant, each in usual.items()},
        "by_memory": {
            variant: {str(mb): _at(mb, usual[variant], at_once) for mb in MEMORY_MB}
            for variant, (_, at_once) in VARIANTS.items()
        },
    }


def _at(memory_mb: int, found: dict[str, float], at_once: int) -> dict[str, float]:
    """What memory makes of a measured variant."""
    cpu = found["cpu_ms"] / 1000 / min(1, memory_mb / WHOLE_VCPU_MB)
    waits = max(0.0, at_once / found["a_second"] - found["cpu_ms"] / 1000)
    rate = throughput(at_once, cpu, waits)
    dollars = memory_mb / 1024 * prices.LAMBDA_GB_SECOND / rate * 1e6
    return {"a_second": round(rate, 1), "dollars_a_million": round(dollars, 2)}


@contextmanager
def stand_ins(delays_ms: tuple[int, ...]) -> Iterator[str]:
    """The URL of a server that answers each call of DynamoDB, SES or SQS after its time."""
    loop = asyncio.new_event_loop()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lower = head.lower()
                length = int(lower.partition(b"content-length:")[2].split(b"\r\n", 1)[0] or 0)
                await reader.readexactly(length)
                which = next((at for mark, at in _MEANS.items() if mark in lower), _SQS)
                await asyncio.sleep(delays_ms[which] / 1000)
                body = _answer(lower)
                writer.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
                    b"content-length: %d\r\n\r\n%b" % (len(body), body)
                )
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = loop.run_until_complete(asyncio.start_server(serve, "127.0.0.1", 0))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    loop.call_soon_threadsafe(loop.stop)
    thread.join()


def _answer(head: bytes) -> bytes:
    if head.startswith(b"post /v2/email"):
        return ANSWERS["SendEmail"]
    operations = ("BatchExecuteStatement", "BatchGetItem")
    return next((ANSWERS[each] for each in operations if each.lower().encode() in head), b"{}")


def _send(module: str) -> dict[str, float]:
    """Warm up, then send so many mails in batches of ten."""
    import importlib

    handler = importlib.import_module(module).handler
    handler(queue_batch(0), context())
    began, used = time.perf_counter(), time.process_time()
    for first in range(10, 10 + MAILS, 10):
        if handler(queue_batch(first), context())["batchItemFailures"]:
            raise RuntimeError("a record came back; the figures would be wrong")
    seconds, cpu = time.perf_counter() - began, time.process_time() - used
    return {"a_second": round(MAILS / seconds, 1), "cpu_ms": round(cpu / MAILS * 1000, 2)}


if __name__ == "__main__":
    report(_send(sys.argv[1]))
