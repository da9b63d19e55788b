"""Turns outcomes into consequences: changes of the ledger in, callbacks and further attempts out."""

from typing import Any

from mailroom import environment
from mailroom.environment import OutcomesSettings
from mailroom.outcomes import Outcomes
from mailroom.telemetry import instrumented

outcomes = Outcomes.of(environment.read(OutcomesSettings))


@instrumented
def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """One batch of the ledger's stream; the failed records by sequence number, as Lambda wants them."""
    failed = outcomes.handle(event["Records"])
    numbers = (record["dynamodb"]["SequenceNumber"] for record in event["Records"])
    return {"batchItemFailures": [{"itemIdentifier": each} for each in numbers if each in failed]}
