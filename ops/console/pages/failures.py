"""What failed: by day, channel and reason, and the newest one by one."""

from collections import Counter
from itertools import islice

from mailroom.channels.contracts import CONTRACTS
from ops.console.site import Answer, Asked, Shown, Site
from ops.messages.failures import failed, failure_of, moment

QUICK, MOST = 200, 5_000
"""How many of the newest are counted: at first, because a page has to come at
once, and if somebody asks for more."""
LISTED = 50
SPANS = {"1h": "the last hour", "24h": "the last day", "7d": "7 days", "30d": "30 days"}


def show(site: Site, asked: Asked) -> Answer:
    """The page. Raises Refused for a span that is none."""
    since, channel, reason = asked["since"] or "24h", asked["channel"], asked["reason"]
    now, most = site.clock(), MOST if asked["more"] else QUICK
    channels = [channel] if channel else list(CONTRACTS)
    items = failed(
        site.client("dynamodb"), site.stage, moment(since, now), now, channels, reason or None, most + 1
    )
    read = list(islice(items, most + 1))
    found = [failure_of(each, full=False) for each in read[:most]]
    counts = Counter((each.at[:10], each.event_type, each.reason) for each in found)
    order = sorted(counts.items(), key=lambda each: (each[0][0], each[1]), reverse=True)
    return Shown(
        template="failures.html",
        values={
            "since": since,
            "spans": SPANS,
            "channels": list(CONTRACTS),
            "counts": [(*key, count) for key, count in order],
            "total": len(found),
            "more": len(read) > most,
            "can_count_more": most < MOST,
            "failures": found[:LISTED],
        },
    )
