"""What the recipients of one batch have chosen, asked in one read."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mailroom.clock import Clock, milliseconds
from mailroom.environment import SuppressingSender
from mailroom.message.message import Message
from mailroom.message.outcome import Rejected
from mailroom.recipients.choices import (
    Choices,
    Preferences,
    Reason,
    Suppression,
    Suppressions,
    Unwanted,
    Wanted,
)
from mailroom.telemetry import logger

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient


class BatchChoices:
    """Whoever is on the suppression list gets nothing more, and whoever has opted out of a topic gets nothing
    of that. A recipient that turns out to be gone, or to have opted out at the provider, enters the list."""

    def __init__(self, settings: SuppressingSender, client: "DynamoDBClient", clock: Clock) -> None:
        self._channel = settings.channel
        self._clock = clock
        self._list = Suppressions(client, settings.suppressions_table, clock)
        self._choices = Choices(self._list, Preferences(client, settings.preferences_table, clock))
        self._asked: set[Wanted] = set()
        self._unwanted: dict[Wanted, Unwanted] = {}

    def begin(self, messages: Iterable[Message]) -> None:
        """Ask for all recipients of a batch in one read. Raises nothing."""
        self._asked, self._unwanted = set(), {}
        try:
            self._ask(each for message in messages for each in _wanted(message))
        except Exception:  # noqa: BLE001 - logged; each message asks for itself, and waits where it cannot
            logger.warning("who may get nothing could not be read", exc_info=True)

    def unwanted(self, message: Message) -> dict[str, Unwanted]:
        """Recipients who must not get the message, each with the reason."""
        wanted = _wanted(message)
        self._ask(wanted)
        return {each.recipient: self._unwanted[each] for each in wanted if each in self._unwanted}

    def mark(self, message: Message, outcome: Rejected) -> None:
        """Put the message's recipients on the suppression list."""
        now = milliseconds(self._clock())
        why: Reason = "stop" if outcome.opted_out else "gone"
        for each in message.addressees:
            self._list.mark(Suppression(each, message.event_type, why, now, outcome.reason, message.id))

    def _ask(self, wanted: Iterable[Wanted]) -> None:
        new = [each for each in wanted if each not in self._asked]
        if new:
            # In this order: for other threads, who was asked for is answered.
            self._unwanted.update(self._choices.find(self._channel, new))
            self._asked.update(new)


def _wanted(message: Message) -> list[Wanted]:
    return [Wanted(each, message.topic) for each in message.addressees]
