"""Makes messages findable: changes of the ledger in, rows of the table `search` out."""

from typing import Any

from mailroom import environment
from mailroom.environment import IndexSettings
from mailroom.search.indexer import Indexer
from mailroom.telemetry import instrumented

indexer = Indexer.of(environment.read(IndexSettings))


@instrumented
def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """One batch of the ledger's stream. If something was not written, this raises, and the whole batch comes
    again."""
    indexer.handle(event["Records"])
    return {"batchItemFailures": []}
