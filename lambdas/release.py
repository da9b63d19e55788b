"""Releases messages that waited: every minute, the channels' queues get what is due and what the day has room
for."""

from typing import Any

from mailroom import environment
from mailroom.dispatch.release import Release
from mailroom.environment import ReleaseSettings
from mailroom.telemetry import instrumented

release = Release.of(environment.read(ReleaseSettings))


@instrumented
def handler(event: dict[str, Any], context: Any) -> None:
    """Work off one shard of what is due, or the line of one channel, or put a canary, as the event's
    `shard`, `line` or `canary` says."""
    release.handle(event, context.get_remaining_time_in_millis)
