"""Pages of failures: messages that failed, bounced, were not delivered or caused a complaint, as a list, and
as bar charts that filter the list."""

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from mailroom.channels.contracts import CONTRACTS
from mailroom.message.outcome import FAILED
from mailroom_ops.console.site import Answer, Request, Shown, Site, View
from mailroom_ops.messages.failed_messages import AHEAD, Failure, FailureFilter, failed, failure_of, moment
from mailroom_ops.messages.filters import check_names

QUICK, MOST = 500, 5_000
"""Numbers of the newest failures that are counted: at first, for a fast page, and on request."""
LISTED = 50
SPANS = {"1h": "the last hour", "24h": "the last day", "7d": "7 days", "30d": "30 days"}
DIMENSIONS = {
    "status": "Status",
    "day": "Day (UTC)",
    "event_type": "Channel",
    "reason": "Code",
    "field": "Attribute",
    "template": "Template",
    "campaign": "Campaign",
}
"""Attributes of `Failure` by which failures are counted, and their titles."""
_BARS = 8


class Bar(Struct, frozen=True):
    """Bar of a chart: the number of failures with a value, and its length in `percent` of the longest bar."""

    value: str
    count: int
    percent: int


class Chart(Struct, frozen=True):
    """Chart of a dimension: its largest bars, and the number of failures that are in none of them."""

    name: str
    title: str
    bars: list[Bar]
    others: int


class Failures(View, frozen=True):
    """Values of the page of failures."""

    since: str
    spans: dict[str, str]
    charts: list[Chart]
    filters: dict[str, tuple[str, str]]
    """Names and values of filters, by their titles."""
    total: int
    looked_at: int
    more: bool
    """Whether failures were left out of the count."""
    failures: list[Failure]


def show(site: Site, request: Request) -> Answer:
    """Show the page. Raises Refused for an invalid span."""
    failures, left_out = _found(site, request)
    filters = {name: request[name] for name in DIMENSIONS}
    titled = {DIMENSIONS[name]: (name, value) for name, value in filters.items() if value}
    charts = [chart for name in DIMENSIONS if (chart := _chart(name, failures)).bars]
    since, limit = request.typed("since") or "24h", MOST if request["more"] else QUICK
    return Shown(Failures(since, SPANS, charts, titled, len(failures), limit, left_out, failures[:LISTED]))


def _found(site: Site, request: Request) -> tuple[list[Failure], bool]:
    """Return the newest failures that match the request, and whether older ones are left out. Raises
    Refused."""
    end, limit = site.clock(), MOST if request["more"] else QUICK
    failure_filter = FailureFilter(**{name: request[name] for name in DIMENSIONS})
    channels = [request["event_type"]] if request["event_type"] else list(CONTRACTS)
    start = moment(request.typed("since") or "24h", end)
    items = failed(site.client("dynamodb"), site.stage, start, end + AHEAD, channels)
    failures, older = newest(items, failure_filter, limit)
    if not (failures or older):
        check_names(site.session, site.stage, failure_filter, FAILED)
    return failures, older


def newest(
    items: Iterator[dict[str, Any]], failure_filter: FailureFilter, limit: int
) -> tuple[list[Failure], bool]:
    """Return the failures that match a filter among the first `limit` items, and whether there are more."""
    failures = [failure_of(item, full=True) for item in itertools.islice(items, limit)]
    return [failure for failure in failures if failure_filter.takes(failure)], next(items, None) is not None


def _chart(name: str, failures: Sequence[Failure]) -> Chart:
    counts = Counter(value for failure in failures if (value := str(getattr(failure, name))))
    order = sorted(counts.items(), key=lambda pair: pair[0], reverse=True)
    if name != "day":
        order.sort(key=lambda pair: -pair[1])
    largest = max(counts.values(), default=1)
    bars = [Bar(value, count, max(1, round(100 * count / largest))) for value, count in order[:_BARS]]
    return Chart(name, DIMENSIONS[name], bars, counts.total() - sum(bar.count for bar in bars))
