"""MiniStack without its delay between polls: for a stream's records, and for messages whose time
has come."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

Handle = Callable[..., Awaitable[Any]]
RECORDS_SECONDS = 10.0
"""For so long GetRecords waits for a first record."""
LOOK_SECONDS = 0.02
TICK_SECONDS = 0.1
_NO_RECORDS = b'{"Records": []'


def waiting(handle: Handle, count: Callable[[], int]) -> Handle:
    """DynamoDB Streams whose GetRecords waits for records, as SQS's ReceiveMessage does for messages: to ask
    again and again costs two processes thirty times what a look in here does.

    `count` returns how many records all streams have had: a stream is read again when that number changes.
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
    """Have queues looked at ten times a second. What is sent wakes their poller anyway; what was delayed, or
    comes back, would wait for up to a second more."""

    def tick() -> None:
        while True:
            time.sleep(TICK_SECONDS)
            wake.set()

    threading.Thread(target=tick, daemon=True).start()
