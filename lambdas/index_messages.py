"""Indexes messages: reads changes from the ledger's stream, and writes rows of the table `search`."""

from typing import Any

from mailroom import environment
from mailroom.environment import IndexSettings
from mailroom.search.indexer import Indexer
from mailroom.telemetry import instrumented

indexer = Indexer.of(environment.read(IndexSettings))


@instrumented
def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """Handle a batch of the ledger's stream. Raises an exception if a row was not written; Lambda then
    repeats the batch."""
    indexer.handle(event["Records"])
    return {"batchItemFailures": []}
