"""Calls to AWS that are not judged by the rights of the running function: somebody else makes them."""

from collections.abc import Iterator
from contextlib import contextmanager

_open_blocks: list[None] = []


@contextmanager
def others() -> Iterator[None]:
    """Judge no call until the block ends."""
    _open_blocks.append(None)
    try:
        yield
    finally:
        _open_blocks.pop()


def others_act() -> bool:
    """Return whether a block of `others` is open."""
    return bool(_open_blocks)
