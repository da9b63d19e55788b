"""Calls of DynamoDB for many items: batches of reads, puts, deletes and inserts."""

from collections.abc import Container, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from mailroom.aws.dynamo_values import Sets, plain

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

MAX_STATEMENTS = 25
"""Maximum number of statements in one BatchExecuteStatement."""
MAX_PUTS = 25
"""Maximum number of writes in one BatchWriteItem."""
MAX_KEYS = 100
"""Maximum number of keys in one BatchGetItem, over all tables."""
_CALLS = 4
"""Maximum number of calls for the same keys before UnprocessedKeys is raised. The SDK itself also repeats
each call if DynamoDB throttles it."""


class UnprocessedKeys(RuntimeError):
    """Raised if DynamoDB has left out some items of a batch. The caller must repeat the work that needs
    them."""


def insert(client: "DynamoDBClient", table: str, items: Sequence[Sets]) -> list[str | None]:
    """Insert new items, in one call for every 25 items. DynamoDB writes or refuses each item separately.

    Returns for each item None if it was written, or else an error code. A code does not prove that the item
    was not written. If the SDK has repeated the call, DuplicateItem may be about this item itself, and after
    other errors the item may have been written as well.
    """
    codes: list[str | None] = []
    for first in range(0, len(items), MAX_STATEMENTS):
        statements: Any = [
            {"Statement": _insert_statement(table, (*item,)), "Parameters": [*item.values()]}
            for item in items[first : first + MAX_STATEMENTS]
        ]
        response = client.batch_execute_statement(Statements=statements)
        codes += [result["Error"]["Code"] if "Error" in result else None for result in response["Responses"]]
    return codes


@lru_cache(maxsize=128)
def _insert_statement(table: str, names: tuple[str, ...]) -> str:
    fields = ", ".join(f"'{name}': ?" for name in names)
    return f'INSERT INTO "{table}" VALUE {{{fields}}}'


def batch_put(client: "DynamoDBClient", table: str, items: Sequence[Sets]) -> None:
    """Put items, or replace items of the same keys, in as few calls as possible. All keys must be different.

    Raises UnprocessedKeys.
    """
    _write(client, table, [{"PutRequest": {"Item": item}} for item in items])


def batch_delete(client: "DynamoDBClient", table: str, keys: Sequence[Sets]) -> None:
    """Delete items, in as few calls as possible. All keys must be different; a missing item is skipped.

    Raises UnprocessedKeys.
    """
    _write(client, table, [{"DeleteRequest": {"Key": key}} for key in keys])


def _write(client: "DynamoDBClient", table: str, requests: Sequence[Any]) -> None:
    for first in range(0, len(requests), MAX_PUTS):
        unwritten: Any = {table: requests[first : first + MAX_PUTS]}
        for _ in range(_CALLS):
            unwritten = client.batch_write_item(RequestItems=unwritten).get("UnprocessedItems")
            if not unwritten:
                break
        else:
            raise UnprocessedKeys(f"{table} could not be written completely: DynamoDB throttles")


def batch_get(
    client: "DynamoDBClient", keys: Mapping[str, Sequence[Sets]], *, consistent: Container[str] = ()
) -> dict[str, list[dict[str, Any]]]:
    """Return the existing items of these keys, by table, in plain Python, in as few calls as possible. The
    tables in `consistent` are read consistently.

    Raises UnprocessedKeys.
    """
    items: dict[str, list[dict[str, Any]]] = {table: [] for table in keys}
    for part in _parts(keys):
        _read(client, part, items, consistent)
    return items


def _parts(keys: Mapping[str, Sequence[Sets]]) -> Iterator[dict[str, list[Sets]]]:
    pairs = ((table, key) for table, keys_of_table in keys.items() for key in keys_of_table)
    while run := list(islice(pairs, MAX_KEYS)):
        part: dict[str, list[Sets]] = {}
        for table, key in run:
            part.setdefault(table, []).append(key)
        yield part


def _read(
    client: "DynamoDBClient",
    part: Mapping[str, list[Sets]],
    items: dict[str, list[dict[str, Any]]],
    consistent: Container[str],
) -> None:
    request: Any = {
        table: {"Keys": keys, **({"ConsistentRead": True} if table in consistent else {})}
        for table, keys in part.items()
    }
    idle = 0
    while request:
        response = client.batch_get_item(RequestItems=request)
        count = 0
        for table, page in response.get("Responses", {}).items():
            items[table] += map(plain, page)
            count += len(page)
        request = response.get("UnprocessedKeys")
        # A response holds 16 MB at most, so large items take several calls. Only a call that returns no items
        # counts as a failed one.
        idle = 0 if count else idle + 1
        if request and idle == _CALLS:
            raise UnprocessedKeys(f"{' and '.join(request)} could not be read completely: DynamoDB throttles")
