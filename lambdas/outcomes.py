"""Reacts to outcomes: reads changes from the ledger's stream, and queues callbacks and further attempts of
faxes."""

from typing import Any

from mailroom import environment
from mailroom.environment import OutcomesSettings
from mailroom.outcomes import Outcomes
from mailroom.telemetry import instrumented

outcomes = Outcomes.of(environment.read(OutcomesSettings))


@instrumented
def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """Handle a batch of the ledger's stream, and return the sequence numbers of failed records, as a partial
    batch response of Lambda."""
    failed = outcomes.handle(event["Records"])
    numbers = (record["dynamodb"]["SequenceNumber"] for record in event["Records"])
    return {"batchItemFailures": [{"itemIdentifier": number} for number in numbers if number in failed]}
