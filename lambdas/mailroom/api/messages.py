"""Messages in the HTTP API: validates them and puts them into the mailbox, returns their statuses, and
cancels waiting messages."""

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
from mailroom.ledger.status_reader import LedgerReader, MessageStatus
from mailroom.ledger.table import LedgerTable
from mailroom.mailbox import MailboxWriter, PutResult, in_order
from mailroom.message.address import has_control
from mailroom.message.message import MAX_ID_BYTES, Key, Message
from mailroom.telemetry import about, count, logger

if TYPE_CHECKING:
    from mailroom.channels.preview import Previews

WORKERS = 16
"""Number of concurrent puts, with which 1,000 puts of 10 ms each take less than a second."""
_METRICS: dict[Result, str] = {
    "accepted": "ApiAccepted",
    "existed": "ApiExisted",
    "refused": "ApiRefused",
    "conflict": "ApiRefused",
    "failed": "ApiFailed",
}


class Intake(Struct, frozen=True):
    """Accepts the messages of requests. Repeating a request is safe, even after a crash: a message that is in
    the mailbox is not put again."""

    validator: Validator
    writer: MailboxWriter
    previews: "Callable[[], Previews] | None" = None
    """Function that returns the previews, which check and render messages as the sender functions do; None to
    skip this check."""
    workers: int = WORKERS

    def take(self, entries: Sequence[Any], prefix: str | None, caller: Caller = ANYBODY) -> list[EntryAnswer]:
        """Put the messages of a request into the mailbox, and return the result of each entry in order. Keys
        of objects must begin with `prefix`; if it is None, objects are not allowed. Raises the errors of
        `Caller.spend`."""
        entries = [_with_prefix(caller.named(entry), prefix) for entry in entries]
        results: dict[int, EntryAnswer] = {}
        first: dict[Key, int] = {}
        repeats: list[int] = []
        messages: dict[int, Message] = {}
        unused = dict[int, list[str]]()
        for number, entry in enumerate(entries):
            validated = self._validated(entry, prefix, caller, alone=len(entries) == 1)
            if isinstance(validated, EntryAnswer):
                results[number] = validated
                continue
            messages[number], unused[number] = validated
            if first.setdefault(messages[number].key, number) != number:
                repeats.append(number)
        grant = caller.spend(_recipients(messages.values()), lambda: self._new(messages.values()))
        # If two entries have the same key, the first one takes precedence. So the second is put only after
        # the first one is in the mailbox.
        for wave in (list(first.values()), repeats):
            results |= self._put(wave, entries, unused)
        # A message whose put failed may be in the mailbox nevertheless, so it is counted in the caller's
        # budget.
        put = [message for at, message in messages.items() if results[at].result in {"accepted", "failed"}]
        caller.settle(grant, _recipients(put))
        _report(results.values())
        return [results[number] for number in range(len(entries))]

    def _validated(
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
        """Check a message as its sender function does, and return its attributes without an effect. A single
        message (`alone`) without a payload is rendered. Any other message is checked by `Previews.check`
        without rendering, and the result is empty. If a template cannot be read, the check is left to the
        sender function. Raises Invalid."""
        if self.previews is None:
            return []
        try:
            if alone and message.payload_ref is None:
                return self.previews().look(message).unused
            self.previews().check(message)
        except (ClientError, BotoCoreError):
            logger.warning("a message's template could not be read", exc_info=True)
        return []

    def _put(
        self, wave: list[int], entries: Sequence[Any], unused: Mapping[int, list[str]]
    ) -> dict[int, EntryAnswer]:
        items = [entries[number] for number in wave]
        puts = self.writer.put_all(items, min(self.workers, len(items))) if items else []
        return {
            number: _result(entries[number], put, unused[number])
            for number, put in zip(wave, puts, strict=True)
        }

    def _new(self, messages: Iterable[Message]) -> int:
        """Return the number of recipients of the messages that are not in the mailbox yet."""
        new = in_order(
            lambda message: None if self.writer.has(message.id, message.event_type) else message,
            messages,
            self.workers,
        )
        return _recipients(filter(None, new))


def _recipients(messages: Iterable[Message]) -> int:
    """Return the number of recipients of the messages. Of several messages with the same key only one is put,
    so the largest of them is counted."""
    smallest_first = sorted(messages, key=lambda message: message.recipient_count)
    return sum({message.key: message.recipient_count for message in smallest_first}.values())


def _with_prefix(entry: Any, prefix: str | None) -> Any:
    """Return the entry, with `payload_prefix` if it has a `payload_ref`. The sender function checks the
    objects that the payload names against the prefix, because the caller can change the payload until it is
    read."""
    if prefix and isinstance(entry, dict) and entry.get("payload_ref") is not None:
        return {**entry, "payload_prefix": prefix}
    return entry


def _check_key(entry: Any) -> None:
    if not isinstance(entry, dict):
        raise Invalid("item", "is not an object; use one with id and event_type")
    if lies_too_deep(entry):
        raise Invalid("item", "has too many levels of lists and maps; use fewer")
    if entry.get("id") is None:
        raise Invalid("id", "is missing; add it, and use the same one if you repeat the request")
    if entry.get("event_type") is None:
        raise Invalid("event_type", "is missing; use a channel, such as mail")
    for name in ("id", "event_type"):
        if not isinstance(entry[name], str) or not entry[name]:
            raise Invalid(name, "is not a string, or empty; use a string")


def _result(entry: Mapping[str, Any], put: PutResult, unused: list[str]) -> EntryAnswer:
    key = Key(entry["id"], entry["event_type"])
    match put.state:
        case "accepted" | "existed":
            # If the SDK repeated the put because the first response was lost, the repeated put found the item
            # of the first one. The message is new nevertheless, so it is counted in the caller's budget.
            return EntryAnswer(
                "accepted" if put.repeated else put.state,
                key.id,
                key.event_type,
                href=href_of(key.id, key.event_type),
                unused=unused or UNSET,
                send_at=assumed_utc(entry.get("send_at")) or UNSET,
            )
        case "conflict" | "refused":
            return _faulty(put.state, entry, put.field, put.problem)
    logger.error("not put into the mailbox", extra=about(key), error=put.error)
    return _faulty("failed", entry, "item", "could not be put into the mailbox; send it again")


def _faulty(result: Result, entry: Any, field: str, problem: str) -> EntryAnswer:
    item = entry if isinstance(entry, dict) else {}
    id_, event_type = _readable(item.get("id")), _readable(item.get("event_type"))
    texts = entry_of(field, problem)
    return EntryAnswer(result, id_, event_type, texts["field"], texts["problem"])


def _readable(text: object) -> str | UnsetType:
    """Return an id or event_type if it is safe in a response and in logs, or else UNSET."""
    if not isinstance(text, str) or has_control(text) or len(text.encode("utf-8", "replace")) > MAX_ID_BYTES:
        return UNSET
    return text


def _report(results: Iterable[EntryAnswer]) -> None:
    counts: Counter[str] = Counter()
    for entry in results:
        counts[_METRICS[entry.result]] += 1
        if entry.result in {"refused", "conflict"}:
            key = {"id": entry.id or None, "event_type": entry.event_type or None}
            logger.warning("not accepted", extra=key, result=entry.result, field=entry.field)
    for name, times in counts.items():
        count(name, times)


class States(Struct, frozen=True):
    """Looks up messages and cancels them."""

    reader: LedgerReader
    ledger: LedgerTable
    clock: Clock = time.time

    def of(self, id_: str, event_type: str | None) -> MessageStatus:
        """Return the status of a message. Raises ApiError: 404 for an unknown message, 409 if several
        messages have the id, 422 for an invalid key."""
        _check(id_, event_type)
        statuses = self.reader.find(id_, event_type)
        if not statuses:
            raise ApiError(HTTPStatus.NOT_FOUND, "there is no such message; it may have expired")
        if len(statuses) > 1:
            event_types = [status.event_type for status in statuses]
            raise ApiError(
                HTTPStatus.CONFLICT,
                f"several messages have that id; add event_type, one of {', '.join(event_types)}",
                [("event_type", f"is missing; use one of {', '.join(event_types)}")],
                event_types=event_types,
            )
        return statuses[0]

    def cancel(self, id_: str, event_type: str | None) -> MessageStatus:
        """Cancel a message that waits, and return its status. If the message is cancelled already, only
        returns the status. Raises the errors of `of`, and ApiError 409 for a message that does not wait."""
        status = self.of(id_, event_type)
        if status.status == "cancelled":
            return status
        if cancellation.cancel(self.ledger, self.reader, status, self.clock()):
            logger.info("cancelled", extra=about(Key(status.id, status.event_type)))
            count("Cancelled")
        status = self.of(id_, status.event_type)
        if status.status != "cancelled":
            raise _past(status)
        return status


def _past(status: MessageStatus) -> ApiError:
    detail = f"the message is {status.status} and does not wait; only a waiting message can be cancelled"
    return ApiError(HTTPStatus.CONFLICT, detail, message_status=status.status)


def _check(id_: str, event_type: str | None) -> None:
    """Raise ApiError for an id or event_type that a message cannot have."""
    length = len(id_.encode("utf-8", "replace"))
    if length > MAX_ID_BYTES:
        raise ApiError.of_field("id", f"is {length} bytes long; an id has at most {MAX_ID_BYTES}")
    if not id_ or has_control(id_):
        raise ApiError.of_field("id", "is empty or holds control characters")
    if event_type is not None and event_type not in CONTRACTS:
        raise ApiError.of_field("event_type", f"{event_type!r:.60} is unknown; use {', '.join(CONTRACTS)}")
