"""Bodies of the messages in the campaigns' two queues, for the functions `collect` and `compose`."""

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
    """Request to start or restart a run."""

    campaign: str
    scheduled_at: str
    """Time of the run in ISO 8601."""
    run: str
    start: str
    """Id of the start. Copies of the message have the same id."""


class Next(Struct, frozen=True):
    """Request to collect the page with the number `page` (counted from 1), which begins at `cursor`."""

    campaign: str
    run: str
    start: str
    page: int
    cursor: Cursor = None


class Chunk(Struct, frozen=True):
    """People of one run, whose messages are composed together."""

    campaign: str
    run: str
    scheduled_at: str
    start: int
    """Number of the start that has collected the people: see `CampaignStart`."""
    recipients: list[Recipient]


class PageRequest(Struct, frozen=True):
    """Request of an operator's dry run for a page of a campaign. `samples` is the number of people to
    return."""

    campaign: str
    run: str
    scheduled_at: str
    cursor: Cursor = None
    samples: int = 0


def as_json(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the response of a function, converted to plain JSON: decimals become numbers."""
    return dict(json.loads(encode(answer)))


def collect_body(text: str) -> Start | Next:
    """Return the request in the body of a message of the collect queue. Raises Malformed."""
    body = scheduled(text)
    if "page" in body:
        request = _convert(body, Next)
        checked(request.run)
        return request
    scheduled_at = body.get("scheduled_at")
    if not isinstance(scheduled_at, str):
        raise Malformed("is not a start or a page: `page` and a text `scheduled_at` are missing")
    run = body.get("run") or scheduled_at
    start = _convert({**body, "run": run, "start": body.get("start") or scheduled_at}, Start)
    name_of(start.scheduled_at)
    return msgspec.structs.replace(start, run=canonical(start.run))


def chunk_of(text: str) -> Chunk:
    """Return the chunk in the body of a message of the audience queue. Raises Malformed."""
    chunk = _convert(decode(text), Chunk)
    checked(chunk.run)
    name_of(chunk.scheduled_at)
    return chunk


def _convert(body: dict[str, Any], kind: type[T]) -> T:
    try:
        return msgspec.convert(body, kind)
    except msgspec.ValidationError as error:
        raise Malformed(f"is not a {kind.__name__.lower()}: {error}") from None


MAX_CHUNK_BYTES = 256 * 1024
"""Maximum number of bytes of the people in one queue message. A call to SQS may have 1 MiB, and `compose` has
all people of a chunk in memory."""


def chunked(people: Iterable[Recipient], size: int) -> tuple[list[list[Recipient]], list[Fault]]:
    """Divide people into chunks of up to `size` people, in order. Returns the chunks, and a fault for each
    person whose attributes are invalid or too large for a chunk."""
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
