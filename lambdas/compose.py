"""Composes a campaign's messages: reads people of its audience, and writes items into the mailbox."""

from typing import Any

from mailroom import environment
from mailroom.campaigns.composer import Composer
from mailroom.environment import ComposeSettings
from mailroom.telemetry import instrumented

composer = Composer.of(environment.read(ComposeSettings))


@instrumented
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Handle a batch of the audience queue and return the records that SQS must deliver again, or do an
    operator's dry run."""
    if "dry_run" in event:
        return composer.dry_run(event["dry_run"], context.get_remaining_time_in_millis)
    return composer.handle(event, context.get_remaining_time_in_millis)
