"""Delivery of a channel's messages to its provider: `Batch` has the messages of one batch, and `Attempt` the
steps of one message."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mailroom.delivery.adapter import Adapter, M, R, Session
from mailroom.delivery.attempt import Attempt
from mailroom.delivery.batch import Batch
from mailroom.delivery.sender_state import SenderState
from mailroom.delivery.worker import QueueRecord, Tools
from mailroom.environment import SuppressingSender
from mailroom.errors import Invalid
from mailroom.message.message import parse
from mailroom.recipients.choices import Choices, Preferences, Suppressions

__all__ = ["Adapter", "Delivery", "Session", "to_people"]


class Delivery(SenderState[M, R]):
    """Delivery of a channel's messages to its provider. A channel's subclass may override the public methods,
    and the classes of its batches and attempts; see FaxDelivery."""

    batch: type[Batch[M, R]] = Batch
    """Class of the channel's batches."""
    attempt: type[Attempt[M, R]] = Attempt
    """Class of the channel's attempts."""

    @contextmanager
    def open(self, messages: Sequence[tuple[M, QueueRecord]]) -> Iterator[Batch[M, R]]:
        """Open a batch of messages for delivery; its end does the accounts. After a crash, the recipients of
        its messages are not counted. Never raises."""
        batch = self.batch(self, self.attempt, messages)
        yield batch
        batch.close()

    def read(self, body: dict[str, Any]) -> tuple[dict[str, Any], M | Invalid]:
        """Read the body of a queue record: the item, and its message or the reason why the message is
        invalid. Raises Malformed."""
        try:
            return body, parse(body, self.contracts)
        except Invalid as fault:
            return body, fault


def to_people(
    settings: SuppressingSender, adapter: Adapter[M, R], tools: Tools, line_seconds: float | None = None
) -> Delivery[M, R]:
    """Build the delivery of a channel whose recipients are people: it checks the suppression list and the
    opt-outs."""
    suppressions = Suppressions(tools.dynamodb, settings.suppressions_table, tools.clock)
    choices = Choices(suppressions, Preferences(tools.dynamodb, settings.preferences_table, tools.clock))
    return Delivery(settings, adapter, tools, choices=choices, line_seconds=line_seconds)
