"""Processes large numbers of items: parallel scans of tables, and lists of values in batches."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Any, TypeVar

from mailroom.message.message import Key

T = TypeVar("T")
Position = Mapping[str, Any]
"""Parameters of a DynamoDB scan: a segment, the number of segments, and the last key of the previous page."""
Page = Callable[[Position], tuple[T, Any]]
"""Function that reads the page at a position. Returns what it read, and the page's LastEvaluatedKey."""


def segments(count: int, page: Page[T]) -> Iterator[T]:
    """Yield the pages of a table, whose `count` segments are read in parallel. At most two pages of each
    segment, of a megabyte each, are in memory."""
    starts: list[Position] = [{"Segment": segment, "TotalSegments": count} for segment in range(count)]
    with ThreadPoolExecutor(count) as pool:
        pending: dict[Future[tuple[T, Any]], Position] = {pool.submit(page, start): start for start in starts}
        while pending:
            done, _ = wait(pending, return_when=FIRST_COMPLETED)
            for future in done:
                position, (content, last_key) = pending.pop(future), future.result()
                if last_key:
                    position = {**position, "ExclusiveStartKey": last_key}
                    pending[pool.submit(page, position)] = position
                yield content


def key_of(image: Mapping[str, Any]) -> Key:
    """Return the key of a message's item in DynamoDB's form."""
    return Key(image["id"]["S"], image["event_type"]["S"])


def parts(values: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield the values in order, in lists of at most `size`."""
    iterator = iter(values)
    while run := list(islice(iterator, size)):
        yield run
