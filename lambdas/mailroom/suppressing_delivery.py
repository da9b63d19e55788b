"""The way of a message to people: whoever is on the suppression list gets nothing more."""

from collections.abc import Iterable

from mailroom.adapter import Adapter, M, R
from mailroom.claim import Claimed
from mailroom.clock import iso, milliseconds
from mailroom.delivery import Delivery, Received, Tools, Wait
from mailroom.environment import Sender
from mailroom.outcome import Rejected
from mailroom.suppressions import Suppression, Suppressions
from mailroom.telemetry import logger

_WHY = {"bounce": "it bounced", "complaint": "its owner complained", "gone": "its provider dropped it"}


class SuppressingDelivery(Delivery[M, R]):
    """Asks the list once a batch, and leaves out who is on it. A recipient that turns out to be gone enters
    it."""

    def __init__(self, settings: Sender, adapter: Adapter[M, R], tools: Tools) -> None:
        super().__init__(settings, adapter, tools)
        self._asked: frozenset[str] = frozenset()
        self._listed: dict[str, Suppression] = {}

    def begin(self, messages: Iterable[M]) -> None:
        """Ask for all recipients of a batch in one read."""
        self._asked, self._listed = frozenset(), {}
        addressees = {each for message in messages for each in message.addressees}
        try:
            self._ask(addressees)
        except Exception:  # noqa: BLE001 - logged; each message asks for itself, and waits where it cannot
            logger.warning("the suppression list could not be read", exc_info=True)

    def _permitted(self, claim: Claimed, message: M) -> M | str:
        self._ask(set(message.addressees) - self._asked)
        listed = [self._listed[each] for each in message.addressees if each in self._listed]
        if not listed:
            return message
        left = message.without({each.recipient for each in listed})
        if left is message or not left.addressees:
            return _sentence(listed[0])
        for each in listed:
            self._ledger.suppress_one(claim, each.recipient, _sentence(each))
        self._over("SuppressedInPart", "sent to some of its recipients", suppressed=len(listed))
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

    def _ask(self, addressees: set[str]) -> None:
        if addressees:
            self._listed = {**self._listed, **self._list.find(self._settings.channel, addressees)}
            self._asked |= addressees

    @property
    def _list(self) -> Suppressions:
        if self._tools.suppressions is None:
            raise TypeError("no suppression list: SUPPRESSIONS_TABLE is not among this sender's settings")
        return self._tools.suppressions


def _sentence(suppression: Suppression) -> str:
    since = iso(suppression.at / 1000)[:10]
    detail = f" ({suppression.detail})" if suppression.detail else ""
    why = _WHY[suppression.reason]
    return f"on the suppression list since {since}: {why}{detail}; an operator can lift it"
