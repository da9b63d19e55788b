"""Many items of a table by their keys, in DynamoDB's own form: what is handed on must not lose its types."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from mailroom.aws.dynamo import MAX_KEYS, string
from mailroom.message.message import Key
from ops.screen import Refused

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Image = dict[str, Any]
_TRIES = 8
"""Calls in a row that bring nothing, over half a minute: the table is throttled for good."""


class Reading:
    """Reads from one account's tables."""

    def __init__(self, client: "DynamoDBClient", sleep: Callable[[float], None] = time.sleep) -> None:
        self._client = client
        self._sleep = sleep

    def images(self, table: str, keys: Iterable[Key], fields: Sequence[str] = ()) -> dict[Key, Image]:
        """The items that there are, read consistently; of each these fields alone (none: all).

        Raises Refused where DynamoDB goes on leaving some out.
        """
        found: dict[Key, Image] = {}
        for part in parts(dict.fromkeys(keys), MAX_KEYS):
            self._read(table, part, fields, found)
        return found

    def _read(self, table: str, keys: Sequence[Key], fields: Sequence[str], found: dict[Key, Image]) -> None:
        asked: Any = {
            table: {"Keys": [typed(key) for key in keys], "ConsistentRead": True, **projected(fields)}
        }
        idle = 0
        while asked:
            reply = self._client.batch_get_item(RequestItems=asked)
            items = reply["Responses"].get(table, [])
            found |= {Key(each["id"]["S"], each["event_type"]["S"]): dict(each) for each in items}
            asked = reply.get("UnprocessedKeys")
            idle = 0 if items else idle + 1
            if asked and idle == _TRIES:
                raise Refused(f"{table} is throttled. Run this again later: it goes on where it was.")
            if asked:
                self._sleep(min(10.0, 0.1 * 2**idle))


def typed(key: Key) -> Image:
    """A key in DynamoDB's form."""
    return {"id": string(key.id), "event_type": string(key.event_type)}


def projected(fields: Sequence[str]) -> dict[str, Any]:
    """The arguments that ask for the key and these fields; nothing where all are wanted."""
    if not fields:
        return {}
    names = {f"#f{at}": name for at, name in enumerate(dict.fromkeys(("id", "event_type", *fields)))}
    return {"ProjectionExpression": ", ".join(names), "ExpressionAttributeNames": names}


def parts(keys: Iterable[Key], most: int) -> Iterator[list[Key]]:
    """Runs of keys, in order."""
    left = iter(keys)
    while run := list(islice(left, most)):
        yield run
