"""People into messages of the audience queue: so many together, and no more bytes than go well together."""

from collections.abc import Iterable, Sequence

import msgspec

from mailroom.campaigns.audience import Fault, Recipient

MAX_CHUNK_BYTES = 256 * 1024
"""Of the people in one queue message: a call takes 1 MiB, and whoever composes them has them in memory."""


def chunked(people: Iterable[Recipient], most: int) -> tuple[list[Sequence[Recipient]], list[Fault]]:
    """Chunks of up to `most` people, in order; and a fault for each who is too large for any."""
    chunks: list[list[Recipient]] = []
    faults: list[Fault] = []
    left = 0
    for each in people:
        size = len(msgspec.json.encode(each)) + 1
        if size > MAX_CHUNK_BYTES:
            problem = f"has {size} bytes of attributes; use at most {MAX_CHUNK_BYTES}"
            faults.append(Fault(f"entry {each.key}", "", problem))
            continue
        if not chunks or len(chunks[-1]) == most or size > left:
            chunks.append([])
            left = MAX_CHUNK_BYTES
        chunks[-1].append(each)
        left -= size
    return [*chunks], faults
