"""Takes messages in: judged by their channel's contract, then put into the mailbox, each on its own."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from mailroom.api.paths import href_of
from mailroom.api.problems import entry_of
from mailroom.dispatch.validator import Admission
from mailroom.errors import Invalid, Malformed
from mailroom.mailbox import MailboxWriter, PutResult
from mailroom.message.address import has_control
from mailroom.message.message import MAX_ID_BYTES, Key
from mailroom.telemetry import about, count, logger

WORKERS = 16
"""Puts at a time: 1,000 of 10 ms each take less than a second of waiting."""
CONFLICT = "is used for another message; use a new one"

Result = Literal["accepted", "existed", "refused", "conflict", "failed"]
_METRICS: dict[Result, str] = {
    "accepted": "ApiAccepted",
    "existed": "ApiExisted",
    "refused": "ApiRefused",
    "conflict": "ApiRefused",
    "failed": "ApiFailed",
}


class Taken(Struct, frozen=True, omit_defaults=True):
    """What became of one entry; its key as far as it has a usable one."""

    result: Result
    id: str | None = None
    event_type: str | None = None
    field: str | None = None
    problem: str | None = None
    href: str | None = None


class Intake:
    """One stage's entrance. The same entries again, after any crash, end as the first time."""

    def __init__(self, admission: Admission, writer: MailboxWriter, workers: int = WORKERS) -> None:
        self._admission = admission
        self._writer = writer
        self._workers = workers

    def take(self, entries: Sequence[Any], prefix: str | None) -> list[Taken]:
        """What became of each entry, in their order. `prefix` is how the keys begin of the objects that their
        caller may name; "": it may name all; None: none."""
        entries = [_held(each, prefix) for each in entries]
        taken: dict[int, Taken] = {}
        first: dict[Key, int] = {}
        again: list[int] = []
        for at, entry in enumerate(entries):
            judged = self._judged(entry, prefix)
            if isinstance(judged, Taken):
                taken[at] = judged
            elif judged in first:
                again.append(at)
            else:
                first[judged] = at
        # Of two entries with one key the first counts, so the second waits until that one stands there.
        for wave in (list(first.values()), again):
            taken |= self._put(wave, entries)
        _tell(taken.values())
        return [taken[at] for at in range(len(entries))]

    def _judged(self, entry: Any, prefix: str | None) -> Key | Taken:
        try:
            _check_key(entry)
            message = self._admission.admit(entry)
            if prefix != "":
                message.check_objects(prefix)
        except Invalid as fault:
            return _refused(entry, fault.field, fault.problem)
        except Malformed as fault:
            return _refused(entry, "item", str(fault))
        except RecursionError:
            return _refused(entry, "item", "lies too deep; use fewer levels of lists and maps")
        return message.key

    def _put(self, wave: list[int], entries: Sequence[Any]) -> dict[int, Taken]:
        items = [entries[at] for at in wave]
        workers = min(self._workers, len(items))
        written = self._writer.put_all(items, workers) if items else []
        return {at: _taken(entries[at], each) for at, each in zip(wave, written, strict=True)}


def _held(entry: Any, prefix: str | None) -> Any:
    """The entry, and where it names a payload what that may name in its turn: its caller can change the
    object until a sender reads it."""
    if prefix and isinstance(entry, dict) and entry.get("payload_ref") is not None:
        return {**entry, "payload_prefix": prefix}
    return entry


def _check_key(entry: Any) -> None:
    if not isinstance(entry, dict):
        raise Invalid("item", "is no object; use one with id and event_type")
    if entry.get("id") is None:
        raise Invalid("id", "is missing; give one, or an Idempotency-Key")
    if entry.get("event_type") is None:
        raise Invalid("event_type", "is missing; name a channel, such as mail")
    for name in ("id", "event_type"):
        if not isinstance(entry[name], str) or not entry[name]:
            raise Invalid(name, "is no string, or empty; use a string")


def _taken(entry: Mapping[str, Any], written: PutResult) -> Taken:
    key = Key(entry["id"], entry["event_type"])
    match written.state:
        case "put":
            return Taken("accepted", key.id, key.event_type, href=href_of(key.id, key.event_type))
        case "existed" if written.same:
            return Taken("existed", key.id, key.event_type, href=href_of(key.id, key.event_type))
        case "existed":
            return _faulty("conflict", entry, "id", CONFLICT)
        case "refused":
            return _refused(entry, written.field, written.problem)
    logger.error("not put into the mailbox", extra=about(key), error=written.error)
    return _faulty("failed", entry, "item", "could not be put into the mailbox; send it again")


def _refused(entry: Any, field: str, problem: str) -> Taken:
    return _faulty("refused", entry, field, problem)


def _faulty(result: Result, entry: Any, field: str, problem: str) -> Taken:
    said = entry_of(field, problem)
    item = entry if isinstance(entry, dict) else {}
    id_, event_type = _shown(item.get("id")), _shown(item.get("event_type"))
    return Taken(result, id_, event_type, said["field"], said["problem"])


def _shown(text: object) -> str | None:
    """A part of a key that may stand in an answer and in a log."""
    if not isinstance(text, str) or has_control(text) or len(text.encode("utf-8", "replace")) > MAX_ID_BYTES:
        return None
    return text


def _tell(taken: Iterable[Taken]) -> None:
    counts: Counter[str] = Counter()
    for each in taken:
        counts[_METRICS[each.result]] += 1
        if each.result in {"refused", "conflict"}:
            logger.warning(
                "not accepted", id=each.id, event_type=each.event_type, result=each.result, field=each.field
            )
    for name, times in counts.items():
        count(name, times)
