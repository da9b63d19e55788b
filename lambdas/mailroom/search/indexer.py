"""Writes the search rows of the messages in the records of the ledger's stream.

Only the message's key is read from a record; its rows are derived from the ledger's present item. So the
order, repetition and delay of records do not matter, and an erased message stays erased.
"""

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from mailroom.aws import clients
from mailroom.aws.dynamo_batches import batch_put
from mailroom.aws.dynamo_values import plain
from mailroom.aws.secret import CachedSecret
from mailroom.environment import IndexSettings
from mailroom.ledger.batch import items_of
from mailroom.message.message import Key
from mailroom.search.campaign_tallies import Tallies
from mailroom.search.rows import Rows

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient


class Indexer:
    """Handler of the ledger's stream. If a batch is not written completely, Lambda repeats it."""

    def __init__(self, settings: IndexSettings, client: "DynamoDBClient", rows: Rows) -> None:
        self._tallies = Tallies(client, settings.search_table, [*settings.campaigns])
        self._settings = settings
        self._client = client
        self._rows = rows

    @classmethod
    def of(cls, settings: IndexSettings) -> "Indexer":
        """Build the indexer from the function's settings."""
        secret = CachedSecret(clients.secretsmanager(), settings.search_key_name, time.time)
        return cls(settings, clients.dynamodb(), Rows(secret))

    def handle(self, records: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Write the rows of the records' messages, and count the messages of campaigns. Returns the ledger
        items of the messages. Raises Contention, InvalidSecret, and errors of DynamoDB and Secrets
        Manager."""
        items = [*self._items(map(_key_of, records)).values()]
        rows = [row.image for item in items for row in self._rows.of(item)]
        batch_put(self._client, self._settings.search_table, rows)
        self._tallies.count(items, self._items)
        return items

    def _items(self, keys: Iterable[Key]) -> dict[Key, dict[str, Any]]:
        return items_of(self._client, self._settings.ledger_table, keys)


def _key_of(record: Mapping[str, Any]) -> Key:
    key = plain(record["dynamodb"]["NewImage"])
    return Key(key["id"], key["event_type"])
