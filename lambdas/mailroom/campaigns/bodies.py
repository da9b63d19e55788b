"""The bodies of the campaigns' two queues."""

import json
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from mailroom.campaigns.audience import Cursor, Fault, Recipient
from mailroom.campaigns.runs import canonical, checked, name_of
from mailroom.errors import Malformed
from mailroom.message.message import decode, encode, scheduled

T = TypeVar("T", bound=Struct)


class Start(Struct, frozen=True):
    """Begin a run: a schedule's, or an operator's. `scheduled_at` is ISO 8601; `start` is its id, by which
    a second copy of the message is known; `by` is the operator ("": a schedule)."""

    campaign: str
    scheduled_at: str
    run: str
    start: str
    by: str = ""


class Next(Struct, frozen=True):
    """Collect page number `page` (counted from 1) from `cursor` on."""

    campaign: str
    run: str
    start: str
    page: int
    cursor: Cursor = None


class Chunk(Struct, frozen=True):
    """People of one run, to be composed together."""

    campaign: str
    run: str
    scheduled_at: str
    recipients: list[Recipient]


class PageRequest(Struct, frozen=True):
    """An operator's dry run asks for one page of a campaign, and for so many people of it as samples."""

    campaign: str
    run: str
    scheduled_at: str
    cursor: Cursor = None
    samples: int = 0


def as_json(answer: dict[str, Any]) -> dict[str, Any]:
    """A function's answer as a queue message would carry it: decimals are numbers."""
    return dict(json.loads(encode(answer)))


def collect_body(text: str) -> Start | Next:
    """What a message of the collect queue asks for. Raises Malformed."""
    body = scheduled(text)
    if "page" in body:
        asked = _convert(body, Next)
        checked(asked.run)
        return asked
    scheduled_at = body.get("scheduled_at")
    if not isinstance(scheduled_at, str):
        raise Malformed("no page, and no scheduled_at of type string: neither a start nor a page")
    run = body.get("run") or scheduled_at
    given = _convert({**body, "run": run, "start": body.get("start") or scheduled_at}, Start)
    name_of(given.scheduled_at)
    return msgspec.structs.replace(given, run=canonical(given.run))


def chunk_of(text: str) -> Chunk:
    """What a message of the audience queue asks for. Raises Malformed."""
    chunk = _convert(decode(text), Chunk)
    checked(chunk.run)
    name_of(chunk.scheduled_at)
    return chunk


def _convert(body: dict[str, Any], kind: type[T]) -> T:
    try:
        return msgspec.convert(body, kind)
    except msgspec.ValidationError as error:
        raise Malformed(f"not a {kind.__name__.lower()}: {error}") from None


MAX_CHUNK_BYTES = 256 * 1024
"""Bytes of the people in one queue message: a call takes 1 MiB, and composing holds the people in memory."""


def chunked(people: Iterable[Recipient], most: int) -> tuple[list[list[Recipient]], list[Fault]]:
    """Chunks of up to `most` people, in order; and a fault for each who is too large for any."""
    chunks: list[list[Recipient]] = []
    faults: list[Fault] = []
    left = 0
    for each in people:
        try:
            size = len(msgspec.json.encode(each)) + 1
        except (UnicodeEncodeError, RecursionError):
            problem = "holds half of a surrogate pair, or too many levels of lists and objects; correct it"
            faults.append(Fault(f"entry {each.key}", "", problem))
            continue
        if size > MAX_CHUNK_BYTES:
            problem = f"has {size} bytes of attributes; use at most {MAX_CHUNK_BYTES}"
            faults.append(Fault(f"entry {each.key}", "", problem))
            continue
        if not chunks or len(chunks[-1]) == most or size > left:
            chunks.append([])
            left = MAX_CHUNK_BYTES
        chunks[-1].append(each)
        left -= size
    return chunks, faults
