"""Releases waiting messages: every minute, it puts the messages that are due, or for which the daily budget
has capacity, into the channels' queues."""

from typing import Any

from mailroom import environment
from mailroom.dispatch.release import Release
from mailroom.environment import ReleaseSettings
from mailroom.telemetry import instrumented

release = Release.of(environment.read(ReleaseSettings))


@instrumented
def handler(event: dict[str, Any], context: Any) -> None:
    """Handle an event: `parts` starts an invocation for each part of the work, `shard` releases the due
    messages of a shard, `line` releases messages of a channel that wait for the daily budget, `removed` ends
    messages of a removed channel, and `canary` puts a test mail into the mailbox."""
    release.handle(event, context.get_remaining_time_in_millis)
