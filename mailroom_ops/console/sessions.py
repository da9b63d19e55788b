"""Sessions of people who have signed in: items of the table `deeds`, which no function reads or writes
otherwise. The table has a time to live, and the role of the console's function may write only keys of
sessions."""

import hashlib
import secrets
from typing import TYPE_CHECKING

from mailroom.aws.dynamo_values import image_of, plain
from mailroom.clock import Clock
from mailroom_ops.console.open_id import Person
from mailroom_ops.console.viewer import Viewer

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

KEYS = "session#"
"""Prefix of the keys of sessions."""
SECONDS = 8 * 3600


class Sessions:
    """Sessions in the table `deeds` of a stage. `rules` is a text of all settings that decide on rights: a
    session of other rules is over."""

    def __init__(self, dynamodb: "DynamoDBClient", table: str, rules: str, clock: Clock) -> None:
        self._dynamodb, self._table, self._clock = dynamodb, table, clock
        self._rules = _digest(rules)

    def begin(self, person: Person) -> str:
        """Store a session of a person, and return its new id. Raises botocore's errors."""
        id_ = secrets.token_urlsafe(32)
        fields = {"who": person.who, "name": person.name, "contents": person.contents, "rules": self._rules}
        item = {**_key(id_), **fields, "ttl": int(self._clock()) + SECONDS}
        self._dynamodb.put_item(TableName=self._table, Item=image_of(item))
        return id_

    def viewer(self, id_: str) -> Viewer | None:
        """Return the person of a session; None if it does not exist or is over. Raises botocore's
        errors."""
        reply = self._dynamodb.get_item(TableName=self._table, Key=image_of(_key(id_)), ConsistentRead=True)
        item = plain(reply.get("Item", {}))
        # DynamoDB deletes an item up to days after its time to live.
        if item.get("rules") != self._rules or item["ttl"] <= self._clock():
            return None
        key = hashlib.sha256(f"key {id_}".encode()).digest()
        return Viewer(item["who"], item["name"], item["contents"], key)

    def end(self, id_: str) -> None:
        """Delete a session. Raises botocore's errors."""
        self._dynamodb.delete_item(TableName=self._table, Key=image_of(_key(id_)))


def _key(id_: str) -> dict[str, str]:
    # The table has only a digest: a person who can read the table cannot take over a session.
    return {"found_by": f"{KEYS}{_digest(id_)}", "asked_at": "session"}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
