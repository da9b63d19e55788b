"""Messages in: validated by their channel's contract and put into the mailbox, each on its own. Messages
looked up: where they are. Messages taken back, while they wait for their time."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import UNSET, Struct, UnsetType

from mailroom.api.answers import ApiError, EntryAnswer, Result, entry_of
from mailroom.api.callers import ANYBODY, Caller
from mailroom.api.requests import href_of
from mailroom.channels.contracts import CONTRACTS
from mailroom.clock import Clock, assumed_utc
from mailroom.dispatch.dispatcher import Validator
from mailroom.errors import Invalid, Malformed, lies_too_deep
from mailroom.ledger import cancellation
from mailroom.ledger.reader import LedgerReader, MessageStatus
from mailroom.ledger.table import LedgerTable
from mailroom.mailbox import MailboxWriter, PutResult, in_order
from mailroom.message.address import has_control
from mailroom.message.message import MAX_ID_BYTES, Key, Message
from mailroom.telemetry import about, count, logger

if TYPE_CHECKING:
    from mailroom.channels.preview import Previews

WORKERS = 16
"""Puts at a time: 1,000 of 10 ms each take less than a second of waiting."""
_METRICS: dict[Result, str] = {
    "accepted": "ApiAccepted",
    "existed": "ApiExisted",
    "refused": "ApiRefused",
    "conflict": "ApiRefused",
    "failed": "ApiFailed",
}


class Intake(Struct, frozen=True):
    """The entrance of one stage. The same entries again, after any crash, end as the first time."""

    validator: Validator
    writer: MailboxWriter
    previews: "Callable[[], Previews] | None" = None
    """What the senders would make of messages; None: nobody asks."""
    workers: int = WORKERS

    def take(self, entries: Sequence[Any], prefix: str | None, caller: Caller = ANYBODY) -> list[EntryAnswer]:
        """What became of each entry, in their order. `prefix` is how the keys begin of the objects that their
        caller may name; "": it may name all; None: none. Raises ApiError: see `Caller.spend`."""
        entries = [_held(caller.named(each), prefix) for each in entries]
        taken: dict[int, EntryAnswer] = {}
        first: dict[Key, int] = {}
        again: list[int] = []
        messages: dict[int, Message] = {}
        unused = dict[int, list[str]]()
        for at, entry in enumerate(entries):
            judged = self._judged(entry, prefix, caller, alone=len(entries) == 1)
            if isinstance(judged, EntryAnswer):
                taken[at] = judged
                continue
            messages[at], unused[at] = judged
            if first.setdefault(messages[at].key, at) != at:
                again.append(at)
        grant = caller.spend(_recipients(messages.values()), lambda: self._new(messages.values()))
        # Of two entries with one key the first counts, so the second waits until that one stands there.
        for wave in (list(first.values()), again):
            taken |= self._put(wave, entries, unused)
        # One that failed may be in the mailbox: nobody knows.
        put = [each for at, each in messages.items() if taken[at].result in {"accepted", "failed"}]
        caller.settle(grant, _recipients(put))
        _report(taken.values())
        return [taken[at] for at in range(len(entries))]

    def _judged(
        self, entry: Any, prefix: str | None, caller: Caller, *, alone: bool
    ) -> tuple[Message, list[str]] | EntryAnswer:
        try:
            _check_key(entry)
            message = self.validator.validate(entry)
            caller.check(message)
            if prefix != "":
                message.check_objects(prefix)
            return message, self._unused(message, alone=alone)
        except Invalid as fault:
            return _faulty("refused", entry, fault.field, fault.problem)
        except Malformed as fault:
            return _faulty("refused", entry, "item", str(fault))

    def _unused(self, message: Message, *, alone: bool) -> list[str]:
        """Check a message as its sender would, and return its attributes that change nothing, if they are
        known: a message that comes `alone` is rendered, of other messages the names are checked. If a
        template cannot be read now, the message is its sender's to judge. Raises Invalid."""
        if self.previews is None:
            return []
        try:
            if alone and message.payload_ref is None:
                return self.previews().look(message).unused
            self.previews().check(message)
        except (ClientError, BotoCoreError):
            logger.warning("a message's template was not looked at", exc_info=True)
        return []

    def _put(
        self, wave: list[int], entries: Sequence[Any], unused: Mapping[int, list[str]]
    ) -> dict[int, EntryAnswer]:
        items = [entries[at] for at in wave]
        workers = min(self.workers, len(items))
        written = self.writer.put_all(items, workers) if items else []
        return {at: _taken(entries[at], each, unused[at]) for at, each in zip(wave, written, strict=True)}

    def _new(self, messages: Iterable[Message]) -> int:
        """Count the recipients of the messages whose keys the mailbox does not have."""
        new = in_order(
            lambda each: None if self.writer.has(each.id, each.event_type) else each, messages, self.workers
        )
        return _recipients(filter(None, new))


def _recipients(messages: Iterable[Message]) -> int:
    """Count the most recipients that the messages can reach, of which one of each key is put."""
    smallest_first = sorted(messages, key=lambda each: each.recipient_count)
    return sum({each.key: each.recipient_count for each in smallest_first}.values())


def _held(entry: Any, prefix: str | None) -> Any:
    """The entry, and where it names a payload what that may name in its turn: its caller can change the
    object until a sender reads it."""
    if prefix and isinstance(entry, dict) and entry.get("payload_ref") is not None:
        return {**entry, "payload_prefix": prefix}
    return entry


def _check_key(entry: Any) -> None:
    if not isinstance(entry, dict):
        raise Invalid("item", "is no object; use one with id and event_type")
    if lies_too_deep(entry):
        raise Invalid("item", "lies too deep; use fewer levels of lists and maps")
    if entry.get("id") is None:
        raise Invalid("id", "is missing; give one, and the same one if you repeat the request")
    if entry.get("event_type") is None:
        raise Invalid("event_type", "is missing; name a channel, such as mail")
    for name in ("id", "event_type"):
        if not isinstance(entry[name], str) or not entry[name]:
            raise Invalid(name, "is no string, or empty; use a string")


def _taken(entry: Mapping[str, Any], written: PutResult, unused: list[str]) -> EntryAnswer:
    key = Key(entry["id"], entry["event_type"])
    match written.state:
        case "accepted" | "existed":
            # A put whose first try lost its answer counts in its caller's day.
            return EntryAnswer(
                "accepted" if written.repeated else written.state,
                key.id,
                key.event_type,
                href=href_of(key.id, key.event_type),
                unused=unused or UNSET,
                send_at=assumed_utc(entry.get("send_at")) or UNSET,
            )
        case "conflict" | "refused":
            return _faulty(written.state, entry, written.field, written.problem)
    logger.error("not put into the mailbox", extra=about(key), error=written.error)
    return _faulty("failed", entry, "item", "could not be put into the mailbox; send it again")


def _faulty(result: Result, entry: Any, field: str, problem: str) -> EntryAnswer:
    said = entry_of(field, problem)
    item = entry if isinstance(entry, dict) else {}
    id_, event_type = _shown(item.get("id")), _shown(item.get("event_type"))
    return EntryAnswer(result, id_, event_type, said["field"], said["problem"])


def _shown(text: object) -> str | UnsetType:
    """A part of a key that may stand in an answer and in a log."""
    if not isinstance(text, str) or has_control(text) or len(text.encode("utf-8", "replace")) > MAX_ID_BYTES:
        return UNSET
    return text


def _report(taken: Iterable[EntryAnswer]) -> None:
    counts: Counter[str] = Counter()
    for each in taken:
        counts[_METRICS[each.result]] += 1
        if each.result in {"refused", "conflict"}:
            key = {"id": each.id or None, "event_type": each.event_type or None}
            logger.warning("not accepted", extra=key, result=each.result, field=each.field)
    for name, times in counts.items():
        count(name, times)


class States(Struct, frozen=True):
    """Answers for one stage."""

    reader: LedgerReader
    ledger: LedgerTable
    clock: Clock = time.time

    def of(self, id_: str, event_type: str | None) -> MessageStatus:
        """Where a message is. Raises ApiError: 404 there is none, 409 there are several, 422 no such key."""
        _check(id_, event_type)
        found = self.reader.find(id_, event_type)
        if not found:
            raise ApiError(HTTPStatus.NOT_FOUND, "there is no such message; it may be past its retention")
        if len(found) > 1:
            there = [each.event_type for each in found]
            raise ApiError(
                HTTPStatus.CONFLICT,
                f"several messages have that id; add event_type, one of {', '.join(there)}",
                [("event_type", f"is missing; use one of {', '.join(there)}")],
                event_types=there,
            )
        return found[0]

    def cancel(self, id_: str, event_type: str | None) -> MessageStatus:
        """Take it back; once more changes nothing. Raises ApiError: as `of`, and 409 past waiting."""
        status = self.of(id_, event_type)
        if status.status == "cancelled":
            return status
        if cancellation.cancel(self.ledger, self.reader, status, self.clock()):
            logger.info("cancelled", extra=about(Key(status.id, status.event_type)))
            count("Cancelled")
        now = self.of(id_, status.event_type)
        if now.status != "cancelled":
            raise _past(now)
        return now


def _past(status: MessageStatus) -> ApiError:
    detail = f"it is {status.status} and waits for no time to come; only what waits can be cancelled"
    return ApiError(HTTPStatus.CONFLICT, detail, message_status=status.status)


def _check(id_: str, event_type: str | None) -> None:
    """Raise ApiError for what no message can have."""
    length = len(id_.encode("utf-8", "replace"))
    if length > MAX_ID_BYTES:
        raise ApiError.of_field("id", f"is {length} bytes long; no message's is over {MAX_ID_BYTES}")
    if not id_ or has_control(id_):
        raise ApiError.of_field("id", "is empty or holds control characters; no message's does")
    if event_type is not None and event_type not in CONTRACTS:
        raise ApiError.of_field("event_type", f"{event_type!r:.60} is no channel; use {', '.join(CONTRACTS)}")
