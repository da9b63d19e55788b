"""The demo's day: it is closed for bulk, whose mails wait in line; then it opens, and each goes out once."""

import time
from collections.abc import Sequence
from threading import Event

from mailroom.ledger.waits import Waits
from lab.harness.expected import Expected
from lab.harness.stage_client import StageClient
from lab.harness.waiter import Waiter
from mailroom_local.stage.workspace import LEDGER

CHANNEL = "mail"
CLOSED_SECONDS = 3600
"""Longer than the demo: the day opens only because it is opened."""
WAIT_SECONDS = 120.0


class DayRun:
    """A day that closes and opens. `waited` counts the mails that were in line when it opened, `meanwhile`
    the codes that had gone out by then; `seconds` are from its opening to the last end."""

    def __init__(self, stage: StageClient, load: Sequence[Expected]) -> None:
        self._stage = stage
        self._waiter = Waiter(stage)
        self._waits = Waits(stage.dynamodb, LEDGER, 0)
        self._bulk = [message.key for message in load if message.item.get("lane") == "bulk"]
        self._codes = [message.key for message in load if message.key not in self._bulk]
        self.waited = self.meanwhile = 0
        self.seconds = 0.0

    def close(self) -> None:
        """Close the day for bulk."""
        self._stage.close_day(CHANNEL, time.time() + CLOSED_SECONDS)

    def disturb(self, _: Event) -> None:
        """Open the day when all of bulk waits and all codes have gone out."""
        try:
            self._waiter.until(self._lacking, WAIT_SECONDS)
        finally:
            self._stage.open_day(CHANNEL)
        start = time.monotonic()
        self._waiter.until_ended(self._bulk, WAIT_SECONDS, lambda _: None)
        self.seconds = time.monotonic() - start

    def _lacking(self) -> str:
        keys = {(row.key.id, row.key.event_type) for row in self._waits.line(CHANNEL)}
        self.waited, self.meanwhile = len(keys & {*self._bulk}), len(self._stage.ended(self._codes))
        if (self.waited, self.meanwhile) == (len(self._bulk), len(self._codes)):
            return ""
        return f"{self.waited} mails of bulk wait for the day, and {self.meanwhile} codes have gone out"
