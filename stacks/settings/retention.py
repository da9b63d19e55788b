"""r"""

from typing import Literal

from pydantic import Field

from stacks.settings.sections import Function, QueueWorker, Section


class Scheduled(QueueWorker):
    """The queue on which EventBridge schedules bring back messages whose `send_at` has come."""

    longest_throttling_seconds: int = Field(default=3_600, ge=0, le=172_800)


class Stream(Function):
    """How a table's stream is read: the mailbox's by dispatch, the ledger's by outcomes."""

    enabled: bool = True
    """Whether Lambda reads the stream; the local stage's pump does it there."""
    batch_size: int = Field(default=100, ge=1, le=1000)
    batch_window_seconds: int = Field(default=0, ge=0, le=300)
    retries: int = Field(default=10, ge=0, le=1000)
    maximum_record_age_seconds: int = Field(default=21_600, ge=60, le=86_400)
    """A stream keeps its records for a day."""
    parallelization: int = Field(default=2, ge=1, le=10)


LEAST_LEDGER_DAYS = 90
"""So long every ledger remembers, whatever its stage is set to or was: an item lives by the setting that held
when it was written, so that nobody can tell from today's what is forgotten."""


class Retention(Section):
    """How long things are kept."""

    queue_days: int = Field(default=4, ge=1, le=13)
    dead_letter_days: int = Field(default=14, ge=2, le=14)
    margin_days: int = Field(default=1, ge=1, le=7)
    """Added to what is derived: the time that a message may wait behind others before its first receive."""
    ledger_days: int = Field(default=LEAST_LEDGER_DAYS, ge=LEAST_LEDGER_DAYS, le=3650)
    mailbox_days: int | None = Field(default=None, ge=1, le=3650)
    """What producers should set as `ttl`, published as an output; null keeps items for ever."""
    payload_days: int = Field(default=90, ge=1, le=3650)
    unprocessed_days: int = Field(default=60, ge=1, le=3650)
    """What a stream gave up on, waiting to be replayed."""
    log_days: Literal[1, 7, 14, 30, 90, 180, 365] = 30

    def days_of(self, *, fifo: bool) -> int:
        """How long a queue keeps a message. A FIFO queue's may wait behind others for long, and its age
        starts anew in its dead-letter queue: it keeps as long as that."""
        return self.dead_letter_days if fifo else self.queue_days
