"""BatchGetItem, of several tables at once, until all is read."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from mailroom.aws.dynamo import Sets, plain

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

MAX_KEYS = 100
"""Of one call, over all tables."""
_READS = 4
"""Calls for the same keys, which the SDK has repeated by itself already where it was throttled."""


class Unread(RuntimeError):
    """DynamoDB did not hand out all that was asked for: whoever asked must try again."""


def batch_get(
    client: "DynamoDBClient", wanted: Mapping[str, Sequence[Sets]], *, consistent: bool = False
) -> dict[str, list[dict[str, Any]]]:
    """The items of these keys that there are, by table, in plain Python; in as few calls as can be.

    Raises Unread where DynamoDB goes on leaving some out.
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
        if asked and idle == _READS:
            raise Unread(f"{' and '.join(asked)} could not be read whole: DynamoDB throttles")
