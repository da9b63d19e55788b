"""Interface of the reasons why messages wait instead of being sent. `SenderState.reasons` has one row for
each, in the order of asking. `DELAYED_SINCE` in `dispatch/release.py` has a line for each."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from msgspec import Struct

from mailroom.delivery.worker import QueueRecord
from mailroom.errors import Invalid
from mailroom.message.message import Key, Message
from mailroom.message.outcome import Outcome

Due = float | Invalid
"""Time in epoch seconds until which a message waits, or the reason why it can never be sent."""


class Entry(Struct, frozen=True):
    """Message of a batch, before it is claimed."""

    message: Message
    record: QueueRecord
    halted: str | None = None
    """STOPPED, PAUSED or RUN_UNKNOWN if the message's campaign run does not let the message go on."""


class Answer(Struct, frozen=True):
    """Result of a message's submit, or the reason why a message was not submitted."""

    key: Key
    """Key of the message. The message itself is not stored, because its content may be large."""
    recipients: int
    """Number of recipients of the request."""
    outcome: Outcome | None
    """Outcome; None if it is unknown."""


class WaitReason(ABC):
    """Reason why messages wait. It is asked once for each batch, and learns from the answers to the batch. An
    object of this class outlives a batch."""

    name: str
    """Name of the reason in the ledger."""
    metric: str
    """Metric that counts the messages that wait."""

    @abstractmethod
    def waits(self, entries: Sequence[Entry], moment: float) -> Mapping[Key, Due]:
        """Return the messages that must wait at `moment` (epoch seconds), by key. `entries` need not wait for
        any reason before this one. An error returns all entries to the queue."""

    def learn(self, answers: Sequence[Answer]) -> None:  # noqa: B027 - most reasons learn nothing
        """Learn from the provider's answers to a batch. By default, the answers are ignored. An error is
        only logged."""
