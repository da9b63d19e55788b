"""What failed: by day, channel and reason, and the newest one by one."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from mailroom.channels.contracts import CONTRACTS
from ops.console.site import Answer, Asked, Shown, Site
from ops.messages.failures import Failure, failed, failure_of, moment

QUICK, MOST = 200, 5_000
"""How many of the newest are counted: at first, because a page has to come at
once, and if somebody asks for more."""
SEARCHED, MOST_SEARCHED = 5_000, 20_000
"""How many of the newest are looked at for one reason, at first and for more. DynamoDB's `Limit` counts
before its filter: a rare reason would take a call for every few that failed."""
LISTED = 50
SPANS = {"1h": "the last hour", "24h": "the last day", "7d": "7 days", "30d": "30 days"}


def show(site: Site, asked: Asked) -> Answer:
    """The page. Raises Refused for a span that is none."""
    since, channel, reason = asked.typed("since") or "24h", asked["channel"], asked.typed("reason")
    now, more = site.clock(), bool(asked["more"])
    most = MOST if more else QUICK
    searched = (MOST_SEARCHED if more else SEARCHED) if reason else most
    items = failed(
        site.client("dynamodb"),
        site.stage,
        moment(since, now),
        now,
        [channel] if channel else list(CONTRACTS),
        None,
        None if reason else most + 1,
    )
    found, left_out = _newest(items, reason, most, searched)
    counts = Counter((each.at[:10], each.event_type, each.reason, each.field) for each in found)
    order = sorted(counts.items(), key=lambda each: (each[0][0], each[1]), reverse=True)
    return Shown(
        template="failures.html",
        values={
            "since": since,
            "spans": SPANS,
            "channels": list(CONTRACTS),
            "counts": [(*key, count) for key, count in order],
            "total": len(found),
            "more": left_out,
            "can_count_more": not more,
            "searched": searched,
            "failures": found[:LISTED],
        },
    )


def _newest(
    items: Iterable[dict[str, Any]], reason: str, most: int, searched: int
) -> tuple[list[Failure], bool]:
    """The first `most` that failed for this reason ("": for any) among the first so many, and whether there
    are others behind."""
    found: list[Failure] = []
    for at, item in enumerate(items):
        if at == searched or len(found) == most:
            return found, True
        failure = failure_of(item, full=False)
        if reason in ("", failure.reason):
            found.append(failure)
    return found, False
