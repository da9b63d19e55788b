"""Collects a campaign's audience: one page of it an invocation, its people out, the next page's cursor on."""

from typing import Any

from mailroom import environment
from mailroom.campaigns.collector import Collector
from mailroom.environment import CollectSettings
from mailroom.telemetry import instrumented

collector = Collector.of(environment.read(CollectSettings))


@instrumented
def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """A batch of the collect queue, and the records that must come back; or an operator's dry run."""
    if "dry_run" in event:
        return collector.dry_run(event["dry_run"])
    return collector.handle(event)
