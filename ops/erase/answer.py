"""What `erase` answers."""

from typing import Literal

from msgspec import Struct

Ses = Literal["not_asked", "lifted", "not_listed", "kept", "failed"]


class ErasurePlace(Struct):
    """One table, bucket or queue: what was `found` there of the person, how much of that was `erased`, `kept`
    because of --keep-choices, and how much a last look has `left` there."""

    place: str
    found: int = 0
    erased: int = 0
    kept: int = 0
    left: int = 0


class Left(Struct, frozen=True):
    """Something that could not be erased now, and why not: the sentence ends with what is to be done."""

    place: str
    what: str
    why: str


class Erased(Struct, frozen=True):
    """Answer of `erase`. `cancelled` messages were on their way and will not be sent. `ids` are those of
    messages that hold the recipient themselves: the last of them goes at `ids_until` (ISO 8601, UTC). `left`
    is what a last look has found, that which is named in `remains` among it. `ses` is what became of the
    address on SES's own suppression list."""

    stage: str
    dry_run: bool
    places: list[ErasurePlace]
    cancelled: int
    remains: list[Left]
    ids: list[str]
    ids_until: str | None
    ses: Ses
    left: int
