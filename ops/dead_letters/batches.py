"""Dead letters in runs that one call of SQS takes."""

from collections.abc import Iterator
from typing import Any

from mailroom.aws import queues


def batches(letters: list[Any], most: int) -> Iterator[list[Any]]:
    """Runs of letters that one call takes, in order."""
    batch: list[Any] = []
    size = 0
    for each in letters:
        bytes_ = len(each["Body"].encode()) + _attributes_size(each)
        if batch and (len(batch) == most or size + bytes_ > queues.MAX_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(each)
        size += bytes_
    if batch:
        yield batch


def _attributes_size(letter: Any) -> int:
    told = letter.get("MessageAttributes", {})
    return sum(
        len(name.encode())
        + len(value["DataType"].encode())
        + len(value.get("StringValue", "").encode())
        + len(value.get("BinaryValue", b""))
        for name, value in told.items()
    )
