"""The way of a text message: as any to people, and told apart from others of the same words."""

from collections.abc import Container
from typing import cast

from mailroom.channels.sms.contract import Sms, SmsRequest
from mailroom.delivery.adapter import Adapter
from mailroom.delivery.delivery import Tools
from mailroom.delivery.suppressing_delivery import SuppressingDelivery
from mailroom.environment import Sender, SmsSender

_HOUR_MS = 3_600_000


class SmsDelivery(SuppressingDelivery[Sms, SmsRequest]):
    """A look-up finds a message by its number and its text, and two that are alike may be on their way: those
    that the ledger knows as others' are none of it."""

    def __init__(self, settings: Sender, adapter: Adapter[Sms, SmsRequest], tools: Tools) -> None:
        super().__init__(settings, adapter, tools)
        self._skew_ms = cast(SmsSender, settings).clock_skew_seconds * 1000

    def _known(self, message: Sms, since: int) -> Container[str]:
        # By our own clock, and recorded after it was submitted: generous, for one that is missing would be
        # taken for this one, and this one would be lost.
        earliest = since - self._skew_ms - _HOUR_MS
        return self._ledger.ids_on_line(message.number, earliest)
