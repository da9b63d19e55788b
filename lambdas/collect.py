"""Collects a campaign's audience: an invocation reads one page, and queues the people on this page and the
cursor of the next page."""

from typing import Any

from mailroom import environment
from mailroom.campaigns.collector import Collector
from mailroom.environment import CollectSettings
from mailroom.telemetry import instrumented

collector = Collector.of(environment.read(CollectSettings))


@instrumented
def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """Handle a batch of the collect queue and return the records that SQS must deliver again, or do an
    operator's dry run."""
    if "dry_run" in event:
        return collector.dry_run(event["dry_run"])
    return collector.handle(event)
