"""Calls of DynamoDB for many items: batches of reads, puts and inserts."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from mailroom.aws.dynamo_values import Sets, plain

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

MAX_STATEMENTS = 25
"""Statements of one BatchExecuteStatement."""


def insert(client: "DynamoDBClient", table: str, items: Sequence[Sets]) -> list[str | None]:
    """Put items that are new, in one call for every 25; DynamoDB decides on each by itself.

    None: the item was written. An error's code is no proof of the opposite: an item of the key was there
    (DuplicateItem), which may be this one by a repeat of the call, or DynamoDB was too busy, or did not know.
    """
    codes: list[str | None] = []
    for first in range(0, len(items), MAX_STATEMENTS):
        statements: Any = [
            {"Statement": _insert_statement(table, (*each,)), "Parameters": [*each.values()]}
            for each in items[first : first + MAX_STATEMENTS]
        ]
        reply = client.batch_execute_statement(Statements=statements)
        codes += [each["Error"]["Code"] if "Error" in each else None for each in reply["Responses"]]
    return codes


@lru_cache(maxsize=128)
def _insert_statement(table: str, names: tuple[str, ...]) -> str:
    fields = ", ".join(f"'{name}': ?" for name in names)
    return f'INSERT INTO "{table}" VALUE {{{fields}}}'


MAX_PUTS = 25
"""Items of one BatchWriteItem."""


def batch_put(client: "DynamoDBClient", table: str, items: Sequence[Sets]) -> None:
    """Put items, or replace those of the same key; in as few calls as can be. No key may come twice.

    Raises UnprocessedKeys where DynamoDB goes on leaving some out.
    """
    for first in range(0, len(items), MAX_PUTS):
        left: Any = {table: [{"PutRequest": {"Item": each}} for each in items[first : first + MAX_PUTS]]}
        for _ in range(_CALLS):
            left = client.batch_write_item(RequestItems=left).get("UnprocessedItems")
            if not left:
                break
        else:
            raise UnprocessedKeys(f"{table} could not be written whole: DynamoDB throttles")


MAX_KEYS = 100
"""Keys of one call, over all tables."""
_CALLS = 4
"""Calls for the same keys, which the SDK has repeated by itself already where it was throttled."""


class UnprocessedKeys(RuntimeError):
    """DynamoDB did not hand out, or take, all that it was asked to: whoever asked must try again."""


def batch_get(
    client: "DynamoDBClient", wanted: Mapping[str, Sequence[Sets]], *, consistent: bool = False
) -> dict[str, list[dict[str, Any]]]:
    """The items of these keys that there are, by table, in plain Python; in as few calls as can be.

    Raises UnprocessedKeys where DynamoDB goes on leaving some out.
    """
    found: dict[str, list[dict[str, Any]]] = {table: [] for table in wanted}
    for part in _parts(wanted):
        _read(client, part, found, consistent)
    return found


def _parts(wanted: Mapping[str, Sequence[Sets]]) -> Iterator[dict[str, list[Sets]]]:
    keys = ((table, key) for table, each in wanted.items() for key in each)
    while run := list(islice(keys, MAX_KEYS)):
        part: dict[str, list[Sets]] = {}
        for table, key in run:
            part.setdefault(table, []).append(key)
        yield part


def _read(
    client: "DynamoDBClient",
    part: Mapping[str, list[Sets]],
    found: dict[str, list[dict[str, Any]]],
    consistent: bool,
) -> None:
    asked: Any = {
        table: {"Keys": keys, **({"ConsistentRead": True} if consistent else {})}
        for table, keys in part.items()
    }
    idle = 0
    while asked:
        reply = client.batch_get_item(RequestItems=asked)
        got = 0
        for table, items in reply.get("Responses", {}).items():
            found[table] += map(plain, items)
            got += len(items)
        asked = reply.get("UnprocessedKeys")
        # A reply holds 16 MB at most, so large items take several; only those that bring nothing count.
        idle = 0 if got else idle + 1
        if asked and idle == _CALLS:
            raise UnprocessedKeys(f"{' and '.join(asked)} could not be read whole: DynamoDB throttles")
