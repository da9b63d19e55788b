"""Removes MiniStack's delays between polls: for records of streams, and for messages whose delay has
ended."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

Handle = Callable[..., Awaitable[Any]]
RECORDS_SECONDS = 10.0
"""Seconds for which GetRecords waits for a first record."""
LOOK_SECONDS = 0.02
TICK_SECONDS = 0.1
_NO_RECORDS = b'{"Records": []'


def waiting(handle: Handle, count: Callable[[], int]) -> Handle:
    """Return a handler of DynamoDB Streams whose GetRecords waits for records, as SQS's ReceiveMessage does
    for messages. Repeated requests of a client would take thirty times the CPU time of polling in this
    process.

    `count` returns the total number of records of all streams; when it changes, a stream is read again.
    """

    async def handled(*request: Any) -> Any:
        deadline = time.monotonic() + RECORDS_SECONDS
        while True:
            before = count()
            answer = await handle(*request)
            if not answer[2].startswith(_NO_RECORDS) or time.monotonic() > deadline:
                return answer
            while count() == before and time.monotonic() <= deadline:
                await asyncio.sleep(LOOK_SECONDS)

    return handled


def ticking(wake: threading.Event) -> None:
    """Start a thread that wakes the poller of queues ten times a second. A sent message wakes it anyway, but
    a delayed or returned message would wait for up to a second longer."""

    def tick() -> None:
        while True:
            time.sleep(TICK_SECONDS)
            wake.set()

    threading.Thread(target=tick, daemon=True).start()
