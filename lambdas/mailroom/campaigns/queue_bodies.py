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
    """Request to begin a run."""

    campaign: str
    scheduled_at: str
    """Time of the run in ISO 8601."""
    run: str
    start: str
    """Id of the start, which is the same in copies of the message."""
    by: str = ""
    """Operator who has started the run; empty for a schedule."""


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
    """Request of an operator's dry run for a page of a campaign, with a number of people as samples."""

    campaign: str
    run: str
    scheduled_at: str
    cursor: Cursor = None
    samples: int = 0


def as_json(answer: dict[str, Any]) -> dict[str, Any]:
    """Convert the answer of a function like the body of a queue message: decimals become numbers."""
    return dict(json.loads(encode(answer)))


def collect_body(text: str) -> Start | Next:
    """Read the body of a message of the collect queue. Raises Malformed."""
    body = scheduled(text)
    if "page" in body:
        request = _convert(body, Next)
        checked(request.run)
        return request
    scheduled_at = body.get("scheduled_at")
    if not isinstance(scheduled_at, str):
        raise Malformed("no page, and no scheduled_at of type string: neither a start nor a page")
    run = body.get("run") or scheduled_at
    start = _convert({**body, "run": run, "start": body.get("start") or scheduled_at}, Start)
    name_of(start.scheduled_at)
    return msgspec.structs.replace(start, run=canonical(start.run))


def chunk_of(text: str) -> Chunk:
    """Read the body of a message of the audience queue. Raises Malformed."""
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
"""Maximum number of bytes of the people in one queue message: a call takes 1 MiB, and composing holds the
people in memory."""


def chunked(people: Iterable[Recipient], size: int) -> tuple[list[list[Recipient]], list[Fault]]:
    """Divide people into chunks of up to `size` people, in order. Returns the chunks, and a fault for each
    person who is too large for any."""
    chunks: list[list[Recipient]] = []
    faults: list[Fault] = []
    room = 0
    for person in people:
        try:
            bytes_ = len(msgspec.json.encode(person)) + 1
        except (UnicodeEncodeError, RecursionError):
            problem = "holds half of a surrogate pair, or too many levels of lists and objects; correct it"
            faults.append(Fault(f"entry {person.key}", "", problem))
            continue
        if bytes_ > MAX_CHUNK_BYTES:
            problem = f"has {bytes_} bytes of attributes; use at most {MAX_CHUNK_BYTES}"
            faults.append(Fault(f"entry {person.key}", "", problem))
            continue
        if not chunks or len(chunks[-1]) == size or bytes_ > room:
            chunks.append([])
            room = MAX_CHUNK_BYTES
        chunks[-1].append(person)
        room -= bytes_
    return chunks, faults
