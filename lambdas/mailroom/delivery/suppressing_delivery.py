"""The way of a message to people: whoever is on the suppression list gets nothing more, and whoever has opted
out of a topic gets nothing of that."""

from collections.abc import Iterable

from mailroom.clock import milliseconds
from mailroom.delivery.delivery import Adapter, Delivery, M, R, Received, Tools, Wait
from mailroom.environment import Sender
from mailroom.ledger.items import Claimed
from mailroom.message.outcome import Rejected
from mailroom.recipients.choices import Choices, Suppression, Suppressions, Unwanted, Wanted
from mailroom.telemetry import logger


class SuppressingDelivery(Delivery[M, R]):
    """Asks once a batch, and leaves out who may get nothing. A recipient that turns out to be gone enters the
    list."""

    def __init__(self, settings: Sender, adapter: Adapter[M, R], tools: Tools) -> None:
        super().__init__(settings, adapter, tools)
        if tools.suppressions is None or tools.preferences is None:
            raise TypeError("no suppression list or preferences: their tables are not among the settings")
        self._list: Suppressions = tools.suppressions
        self._choices = Choices(tools.suppressions, tools.preferences)
        self._asked: frozenset[Wanted] = frozenset()
        self._unwanted: dict[Wanted, Unwanted] = {}

    def begin(self, messages: Iterable[M]) -> None:
        """Ask for all recipients of a batch in one read."""
        self._asked, self._unwanted = frozenset(), {}
        try:
            self._ask(each for message in messages for each in _wanted(message))
        except Exception:  # noqa: BLE001 - logged; each message asks for itself, and waits where it cannot
            logger.warning("who may get nothing could not be read", exc_info=True)

    def _permitted(self, claim: Claimed, message: M) -> M | Unwanted:
        wanted = _wanted(message)
        self._ask(wanted)
        unwanted = {each.recipient: self._unwanted[each] for each in wanted if each in self._unwanted}
        if not unwanted:
            return message
        left = message.without(unwanted)
        if left is message or not left.addressees:
            return next(iter(unwanted.values()))
        for recipient, why in unwanted.items():
            self._ledger.suppress_one(claim, recipient, why.sentence)
        self._over("SuppressedInPart", "sent to some of its recipients", suppressed=len(unwanted))
        return left

    def _rejected(self, claim: Claimed, message: M, outcome: Rejected, record: Received[M]) -> Wait:
        if outcome.gone:
            try:
                self._mark(message, outcome.reason)
            except Exception:  # noqa: BLE001 - logged; it was not sent, so trying again costs a call
                logger.exception("a recipient that is gone could not be marked")
                return self._unsent(claim, self.retry_wait(record.receives), "unmarked", outcome.reason)
        return super()._rejected(claim, message, outcome, record)

    def _mark(self, message: M, reason: str) -> None:
        now = milliseconds(self._tools.clock())
        for each in message.addressees:
            self._list.mark(Suppression(each, message.event_type, "gone", now, reason, message.id))

    def _ask(self, wanted: Iterable[Wanted]) -> None:
        new = [each for each in wanted if each not in self._asked]
        if new:
            self._unwanted |= self._choices.find(self._settings.channel, new)
            self._asked |= set(new)


def _wanted(message: M) -> list[Wanted]:
    return [Wanted(each, message.topic) for each in message.addressees]
