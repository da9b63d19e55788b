"""Number of functions that a stage may run at a time."""

from collections.abc import Iterator, Mapping, Sequence

from mailroom.ledger.waits import SHARDS
from mailroom_stacks.settings.campaigns import COLLECTORS
from mailroom_stacks.settings.enabled_campaigns import EnabledCampaign, compose_concurrency
from mailroom_stacks.settings.monitoring import NEARLY_ALL
from mailroom_stacks.settings.settings import Settings

FUNCTIONS_AT_ONCE = "FunctionsAtOnce"
"""Name of the output of the stack `monitoring` with the sum of `functions_at_once`."""
STREAM_SHARDS = 1
"""Assumed number of shards of a table's stream. A table with more than about 1,000 writes a second has more,
and Lambda then runs more functions."""


def functions_at_once(settings: Settings, campaigns: Sequence[EnabledCampaign] = ()) -> Mapping[str, int]:
    """Return how many times each function of a stage may run at a time, by the function's short name.

    The functions of the HTTP API are not included, because the stage limits only the rate of requests.
    """
    numbers = {row.function: row.polling.maximum_concurrency for row in settings.lane_rows()}
    if settings.fax:
        numbers |= {"send-fax": settings.fax.concurrent_calls, "retry-fax": 2}
    if campaigns:
        numbers |= {"collect": COLLECTORS, "compose": compose_concurrency(campaigns)}
    readers = ("outcomes", "index-messages") if settings.search else ("outcomes",)
    return numbers | {
        "send-webhook": settings.webhook.maximum_concurrency,
        "feedback": settings.feedback.maximum_concurrency,
        "dispatch": settings.dispatch.parallelization * STREAM_SHARDS,
        **dict.fromkeys(readers, settings.outcomes.parallelization * STREAM_SHARDS),
        # One invocation by the rule, a round for each shard and channel, and the canary. A second round of
        # the same shard or channel does not get the lease, and ends at once.
        "release": 1 + SHARDS + len(settings.channels) + settings.monitoring.canary,
        # One invocation by the schedule, and one by an alarm, which rarely begins together with another.
        "dead-letters": 2,
    }


def concurrency_faults(settings: Settings) -> Iterator[str]:
    """Yield a violation if the functions for events and callbacks could use the account's whole concurrency,
    because then no messages could be sent."""
    numbers, monitoring = functions_at_once(settings), settings.monitoring
    events, callbacks = numbers["feedback"], numbers["send-webhook"]
    many, together = monitoring.many_functions, events + callbacks
    if together >= many:
        yield (
            f"feedback.maximum_concurrency: {events} + webhook.maximum_concurrency {callbacks} = {together} "
            f"functions for events and callbacks must be under {many}, at which the alarm concurrency rings "
            f"({NEARLY_ALL} x monitoring.concurrency_quota {monitoring.concurrency_quota}), so "
            f"that some are left for sending; use {many - 1} or less in all, or have the account's quota "
            "raised."
        )
