"""One lane of a shard: a thread that delivers its records in order while other lanes go on."""

import queue
import threading
import time
from collections.abc import Callable

from local.pump.stream_mapping import Record

EVENT_BYTES = 6 * 1024 * 1024 - 1024  # Lambda's limit for a synchronous event, less its frame
ROOM_BATCHES = 10  # a lane that is this far behind holds up the reader, as a shard does on AWS


class Lane:
    """Collects records into batches: as many as there are, up to the mapping's size and window."""

    def __init__(
        self, batch_size: int, window_seconds: float, deliver: Callable[[list[Record]], None]
    ) -> None:
        self._batch_size = batch_size
        self._window = window_seconds
        self._deliver = deliver
        self._records: queue.Queue[Record] = queue.Queue(batch_size * ROOM_BATCHES)
        self._held: Record | None = None
        threading.Thread(target=self._run, daemon=True).start()

    def put(self, record: Record) -> None:
        """Blocks while the lane is full."""
        self._records.put(record)

    def _run(self) -> None:
        while True:
            self._deliver(self._batch())

    def _batch(self) -> list[Record]:
        batch = [self._held or self._records.get()]
        self._held = None
        size = len(batch[0].text)
        deadline = time.monotonic() + self._window
        while len(batch) < self._batch_size and (record := self._more(deadline)):
            size += len(record.text) + 1
            if size > EVENT_BYTES:
                self._held = record
                break
            batch.append(record)
        return batch

    def _more(self, deadline: float) -> Record | None:
        try:
            wait = deadline - time.monotonic()
            return self._records.get(timeout=wait) if wait > 0 else self._records.get_nowait()
        except queue.Empty:
            return None
