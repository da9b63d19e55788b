"""The search of a stage in process: its table and key, and its rows."""

import time
from typing import Any

from mailroom.aws.secret import CachedSecret
from mailroom.environment import IndexSettings
from mailroom.search.indexer import Indexer
from mailroom.search.rows import Rows
from tests.support.ops.shared import client, make_table
from tests.support.unit.searching import ledger_record

LEDGER, SEARCH, SEARCH_KEY = "mailroom-dev-ledger", "mailroom-dev-search", "mailroom-dev-search-key"
VARIABLES = {"SEARCH_TABLE": SEARCH, "SEARCH_KEY_NAME": SEARCH_KEY}
"""Variables of the API's function for the search."""
CAMPAIGNS: dict[str, float | None] = {"spring": None}
"""Campaigns whose messages are counted."""


def make_search(dynamodb: Any) -> None:
    """The table and the key."""
    make_table(dynamodb, SEARCH, "found_by", "put")
    client("secretsmanager").create_secret(Name=SEARCH_KEY, SecretString='{"key": "0123456789abcdefKEY"}')


def index(dynamodb: Any) -> None:
    """Make findable what the ledger has."""
    settings = IndexSettings(
        ledger_table=LEDGER, search_table=SEARCH, search_key_name=SEARCH_KEY, campaigns=CAMPAIGNS
    )
    rows = Rows(CachedSecret(client("secretsmanager"), SEARCH_KEY, time.time))
    items = dynamodb.scan(TableName=LEDGER)["Items"]
    known = [ledger_record(each["id"]["S"], each["event_type"]["S"]) for each in items]
    Indexer(settings, dynamodb, rows).handle(known)
