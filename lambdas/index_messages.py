"""Indexes messages: reads changes from the ledger's stream, writes rows of the table `search`, and counts the
messages of campaigns' runs. It pauses runs of which too many messages bounce or cause complaints."""

from typing import Any

from mailroom import environment
from mailroom.campaigns.bad_runs import BadRuns
from mailroom.environment import IndexSettings
from mailroom.search.indexer import Indexer
from mailroom.telemetry import instrumented

settings = environment.read(IndexSettings)
indexer = Indexer.of(settings)
bad_runs = BadRuns.of(settings)


@instrumented
def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """Handle a batch of the ledger's stream. Raises an exception if a row was not written, or a run not
    paused; Lambda then repeats the batch."""
    bad_runs.pause(indexer.handle(event["Records"]))
    return {"batchItemFailures": []}
