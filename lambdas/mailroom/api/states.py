"""Where a message is, and taking it back while it waits for its time."""

import time
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Protocol

from mailroom.api.problems import Refusal
from mailroom.channels.contracts import CONTRACTS
from mailroom.clock import Clock
from mailroom.errors import Invalid, Malformed
from mailroom.ledger.reader import READY, LedgerReader, MessageStatus
from mailroom.message.address import has_control
from mailroom.message.message import MAX_ID_BYTES, Key, Message, parse
from mailroom.telemetry import about, count, logger

TAKEN_BACK = "it was taken back by the API before its send_at"
WAITING = frozenset((READY, "scheduled"))


class Withdraws(Protocol):
    """What is asked of the ledger."""

    def withdraw(
        self,
        key: Key,
        message: str,
        to: str | list[str] | None = None,
        callback_url: str | None = None,
        due: float = 0,
    ) -> bool:
        """Cancel what was not claimed; False where it is past that."""


class States:
    """Answers for one stage."""

    def __init__(
        self,
        reader: LedgerReader,
        ledger: Withdraws,
        contracts: Mapping[str, type[Message]],
        clock: Clock = time.time,
    ) -> None:
        self._reader = reader
        self._ledger = ledger
        self._contracts = contracts
        self._clock = clock

    def of(self, id_: str, event_type: str | None) -> MessageStatus:
        """Where a message is. Raises Refusal: 404 there is none, 409 there are several, 422 no such key."""
        _check(id_, event_type)
        found = self._reader.find(id_, event_type)
        if not found:
            raise Refusal(HTTPStatus.NOT_FOUND, "there is no such message; it may be past its retention")
        if len(found) > 1:
            there = [each.event_type for each in found]
            raise Refusal(
                HTTPStatus.CONFLICT,
                f"several messages have that id; add event_type, one of {', '.join(there)}",
                [("event_type", f"is missing; use one of {', '.join(there)}")],
                event_types=there,
            )
        return found[0]

    def cancel(self, id_: str, event_type: str | None) -> MessageStatus:
        """Take it back; once more changes nothing. Raises Refusal: as `of`, and 409 past waiting."""
        status = self.of(id_, event_type)
        if status.status == "cancelled":
            return status
        if status.status not in WAITING:
            raise _past(status)
        self._withdraw(status)
        now = self.of(id_, status.event_type)
        if now.status != "cancelled":
            raise _past(now)
        return now

    def _withdraw(self, status: MessageStatus) -> None:
        key = Key(status.id, status.event_type)
        item = self._reader.item(key.id, key.event_type)
        if item is None:  # its producer took it back: that counts at its time, and may as well count now
            cancelled = self._ledger.withdraw(key, TAKEN_BACK)
        else:
            message = self._waiting(item)
            if message is None:
                raise _past(status)
            cancelled = self._ledger.withdraw(
                key, TAKEN_BACK, message.recipient, message.callback_url, due=message.due() or 0
            )
        if cancelled:
            logger.info("cancelled", extra=about(key))
            count("Cancelled")

    def _waiting(self, item: Mapping[str, Any]) -> Message | None:
        """The message of an item whose time lies ahead. One that is wrong waits for nothing: dispatch refuses
        it."""
        try:
            message = parse(item, self._contracts)
        except (Invalid, Malformed):
            return None
        return message if (message.due() or 0) > self._clock() else None


def _past(status: MessageStatus) -> Refusal:
    detail = f"it is {status.status} and waits for no send_at; only what waits can be cancelled"
    return Refusal(HTTPStatus.CONFLICT, detail, message_status=status.status)


def _check(id_: str, event_type: str | None) -> None:
    """Raise Refusal for what no message can have."""
    length = len(id_.encode("utf-8", "replace"))
    if length > MAX_ID_BYTES:
        raise Refusal.of_field("id", f"is {length} bytes long; no message's is over {MAX_ID_BYTES}")
    if not id_ or has_control(id_):
        raise Refusal.of_field("id", "is empty or holds control characters; no message's does")
    if event_type is not None and event_type not in CONTRACTS:
        raise Refusal.of_field("event_type", f"{event_type!r:.60} is no channel; use {', '.join(CONTRACTS)}")
