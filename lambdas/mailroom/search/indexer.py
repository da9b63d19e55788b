"""Writes the rows of the messages in the ledger's stream.

A record only names a message: its rows follow from the ledger's present item. So repeats, order and delays of
records make no difference, and an erased message stays erased.
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
    """Works for the ledger's stream. A batch that is not written whole comes again."""

    def __init__(self, settings: IndexSettings, client: "DynamoDBClient", rows: Rows) -> None:
        self._tallies = Tallies(client, settings.search_table, settings.campaigns)
        self._settings = settings
        self._client = client
        self._rows = rows

    @classmethod
    def of(cls, settings: IndexSettings) -> "Indexer":
        """Make the indexer of a function with these settings."""
        secret = CachedSecret(clients.secretsmanager(), settings.search_key_name, time.time)
        return cls(settings, clients.dynamodb(), Rows(secret))

    def handle(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Write the rows of the records' messages, and count those of campaigns. Raises Contention, and the
        errors of DynamoDB and of the secret's reader."""
        items = self._items(map(_key_of, records)).values()
        rows = [row.image for item in items for row in self._rows.of(item)]
        batch_put(self._client, self._settings.search_table, rows)
        self._tallies.count(items, self._items)

    def _items(self, keys: Iterable[Key]) -> dict[Key, dict[str, Any]]:
        return items_of(self._client, self._settings.ledger_table, keys)


def _key_of(record: Mapping[str, Any]) -> Key:
    key = plain(record["dynamodb"]["NewImage"])
    return Key(key["id"], key["event_type"])
