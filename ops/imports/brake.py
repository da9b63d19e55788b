"""Puts at the pace that DynamoDB takes: slower for all at once when it throttles, faster again when it does
not."""

import random
import time
from collections.abc import Callable, Mapping
from threading import Event, Lock
from typing import Any

from mailroom.mailbox import MailboxWriter, PutResult

FIRST_WAIT = 0.05
LONGEST_WAIT = 5.0
RECOVERY = 0.9
"""What a put that went well leaves of the wait before each."""
SMALL = 0.002
"""Seconds below which nobody waits any more."""
PATIENCE = 120.0
"""Seconds from the first put that fails to one that goes well: beyond, it is no throttling but an outage."""
STOPPED = "stopped"
"""The error of what was not put because the import ends."""
_PASSING = frozenset(
    (
        *("ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded"),
        *("InternalServerError", "ServiceUnavailable", "InternalFailure", "RequestTimeout", "SlowDown"),
        *("EndpointConnectionError", "ConnectTimeoutError", "ReadTimeoutError", "ConnectionClosedError"),
        *("HTTPClientError", "ProxyConnectionError", "LimitExceededException", "503", "500"),
    )
)
"""What may be over in a moment: AWS's codes and botocore's errors, as MailboxWriter names them."""


class Brake:
    """Shared by all workers. `sleep` and `now` are in seconds."""

    def __init__(
        self,
        writer: MailboxWriter,
        *,
        sleep: Callable[[float], object] | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._writer = writer
        self._stopped = Event()
        self._sleep = sleep or self._stopped.wait
        self._now = now
        self._lock = Lock()
        self.wait = 0.0
        self.throttled = 0
        """How often DynamoDB, or the way to it, asked for patience."""
        self._slowed = now()
        self._failing_since: float | None = None
        """None: the last put went well, or there was none."""

    def stop(self) -> None:
        """Whoever waits gives up: what was not put yet comes back as failed."""
        self._stopped.set()

    def put(self, item: Mapping[str, Any]) -> PutResult:
        """Put one item, as often as it takes; `failed`: it is no use any more to try."""
        while not self._stopped.is_set():
            self._rest()
            written = self._writer.put(item)
            if written.state != "failed":
                self._went()
                return written
            if not self._hopes(written):
                self.stop()
                return written
        return PutResult("failed", None, STOPPED)

    def _rest(self) -> None:
        wait = self.wait
        if wait:
            self._sleep(wait * random.uniform(0.5, 1.5))  # noqa: S311 - it spreads, it hides nothing

    def _went(self) -> None:
        with self._lock:
            self._failing_since = None
            self.wait = self.wait * RECOVERY if self.wait > SMALL else 0.0

    def _hopes(self, written: PutResult) -> bool:
        if written.error.rpartition(": ")[2] not in _PASSING:
            return False
        with self._lock:
            self.throttled += 1
            now = self._now()
            if self._failing_since is None:
                self._failing_since = now
            # What several workers hear at once is one reason to slow down, and not several.
            if not self.wait or now - self._slowed >= self.wait:
                self.wait, self._slowed = min(LONGEST_WAIT, max(FIRST_WAIT, self.wait * 2)), now
            return now - self._failing_since < PATIENCE
