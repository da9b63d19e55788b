"""Items in great numbers: tables read in segments, and values in runs that one call takes."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Any, TypeVar

from mailroom.message.message import Key

T = TypeVar("T")
Page = Callable[[int, Any], tuple[T, Any]]
"""Takes a segment, and where it goes on (None: its beginning). What was read, and where the segment goes on
after that (None: it has ended)."""


def segments(count: int, page: Page[T]) -> Iterator[T]:
    """The pages of a table, so many segments at once. At most two pages of each are
    held, a megabyte each."""
    with ThreadPoolExecutor(count) as pool:
        pending: dict[Future[tuple[T, Any]], int] = {pool.submit(page, at, None): at for at in range(count)}
        while pending:
            done, _ = wait(pending, return_when=FIRST_COMPLETED)
            for each in done:
                segment, (found, start) = pending.pop(each), each.result()
                if start:
                    pending[pool.submit(page, segment, start)] = segment
                yield found


def key_of(image: Mapping[str, Any]) -> Key:
    """The key of a message's item in DynamoDB's form."""
    return Key(image["id"]["S"], image["event_type"]["S"])


def parts(values: Iterable[T], most: int) -> Iterator[list[T]]:
    """Runs of values, in order, of so many at most."""
    left = iter(values)
    while run := list(islice(left, most)):
        yield run
