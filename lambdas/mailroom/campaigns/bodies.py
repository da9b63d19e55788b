"""The bodies of the campaigns' two queues."""

from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from mailroom.campaigns.audience import Cursor, Recipient
from mailroom.campaigns.run import canonical
from mailroom.clock import epoch
from mailroom.errors import Malformed
from mailroom.message.message import decode, encode, scheduled

T = TypeVar("T", bound=Struct)


class Start(Struct, frozen=True):
    """Begin a run: a schedule's, or an operator's. `scheduled_at` is ISO 8601; `start` is its id, by which a
    second copy of it is told."""

    campaign: str
    scheduled_at: str
    run: str
    start: str


class Next(Struct, frozen=True):
    """Collect page number `page` (counted from 1) from `cursor` on."""

    campaign: str
    run: str
    start: str
    page: int
    cursor: Cursor = None

    @property
    def body(self) -> str:
        """The queue message that asks for it."""
        return encode(msgspec.structs.asdict(self))


class Chunk(Struct, frozen=True):
    """People of one run, to be composed together."""

    campaign: str
    run: str
    scheduled_at: str
    recipients: list[Recipient]

    @property
    def body(self) -> str:
        """The queue message that asks for it; numbers keep their digits."""
        return encode(msgspec.structs.asdict(self))


def collect_body(text: str) -> Start | Next:
    """What a message of the collect queue asks for. Raises Malformed."""
    body = scheduled(text)
    if "page" in body:
        return _convert(body, Next)
    scheduled_at = body.get("scheduled_at")
    if not isinstance(scheduled_at, str):
        raise Malformed("no page, and no scheduled_at of type string: neither a start nor a page")
    run = body.get("run") or scheduled_at
    given = _convert({**body, "run": run, "start": body.get("start") or scheduled_at}, Start)
    try:
        epoch(given.scheduled_at)
    except (ValueError, OverflowError):
        raise Malformed(f"scheduled_at {scheduled_at!r:.60} is no ISO 8601 time") from None
    return msgspec.structs.replace(given, run=canonical(given.run))


def chunk_of(text: str) -> Chunk:
    """What a message of the audience queue asks for. Raises Malformed."""
    return _convert(decode(text), Chunk)


def _convert(body: dict[str, Any], kind: type[T]) -> T:
    try:
        return msgspec.convert(body, kind)
    except msgspec.ValidationError as error:
        raise Malformed(f"not a {kind.__name__.lower()}: {error}") from None
