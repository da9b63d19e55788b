"""Pages of failures: messages that failed, bounced, were not delivered or caused a complaint, as a list, and
as bar charts that filter the list."""

import itertools
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from mailroom_ops.console.site import Answer, Download, Request, Shown, Site, View
from mailroom_ops.messages.failed_messages import Failure, FailureFilter, choose, failed, failure_of
from mailroom_ops.messages.failure_groups import FailureGroup, groups_of
from mailroom_ops.messages.filters import bounds_of_failures, check_names

QUICK, MOST = 500, 5_000
"""Numbers of the newest failures that are counted: at first, for a fast page, and on request."""
LISTED = 50
SPANS = {"1h": "the last hour", "": "the last day", "7d": "7 days", "30d": "30 days"}
DIMENSIONS = {
    "status": "Status",
    "day": "Day (UTC)",
    "event_type": "Channel",
    "reason": "Code",
    "domain": "Domain",
    "field": "Attribute",
    "template": "Template",
    "campaign": "Campaign",
}
"""Attributes of `Failure` by which failures are counted, and their titles."""
FILTERS = {**DIMENSIONS, "sentence": "Reason"}
"""Attributes of `Failure` by which the page can be filtered, and their titles."""
GROUPS = 10
"""Maximum number of reasons that are listed."""
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

    def counts(self, total: int) -> bool:
        """Return whether the chart has a bar that is not about all failures."""
        return any(bar.count < total for bar in self.bars)


class Failures(View, frozen=True):
    """Values of the page of failures."""

    since: str
    spans: dict[str, str]
    groups: list[FailureGroup]
    """Largest groups of failures with the same reason."""
    charts: list[Chart]
    filters: dict[str, tuple[str, str]]
    """Names and values of filters, by their titles."""
    total: int
    looked_at: int
    more: bool
    """Whether failures were left out of the count."""
    failures: list[Failure]


def show(site: Site, request: Request) -> Answer:
    """Show the page, or download all its failures as CSV. Raises Refused for an invalid span."""
    failures, left_out = _found(site, request)
    if request["csv"]:
        from mailroom_ops.messages.failures_csv import csv_lines

        selection = choose(site.client("dynamodb"), site.stage, _filter(site, request), full=True)
        return Download(f"failures {site.stage}.csv", csv_lines(selection))
    filters = {name: request[name] for name in FILTERS}
    titled = {FILTERS[name]: (name, value) for name, value in filters.items() if value}
    # A bar for all failures would neither compare nor filter.
    charts = [chart for name in DIMENSIONS if (chart := _chart(name, failures)).counts(len(failures))]
    groups = [] if filters["sentence"] else groups_of(failures)[:GROUPS]
    since, limit = request.typed("since"), MOST if request["more"] else QUICK
    view = Failures(since, SPANS, groups, charts, titled, len(failures), limit, left_out, failures[:LISTED])
    return Shown(view)


def _found(site: Site, request: Request) -> tuple[list[Failure], bool]:
    """Return the newest failures that match the request, and whether older ones are left out. Raises
    Refused."""
    criteria, limit = _filter(site, request), MOST if request["more"] else QUICK
    messages = failed(site.client("dynamodb"), site.stage, criteria)
    failures = [failure_of(message, full=True) for message in itertools.islice(messages, limit)]
    matching, older = [*filter(criteria.takes, failures)], next(messages, None) is not None
    if not (matching or older):
        check_names(site.session, site.stage, criteria, criteria.statuses)
    return matching, older


def _filter(site: Site, request: Request) -> FailureFilter:
    client, campaign, since = site.client("dynamodb"), request["campaign"], request.typed("since")
    span = bounds_of_failures(client, site.stage, campaign, since, site.clock())
    return FailureFilter(**{name: request[name] for name in FILTERS}, **span)


def _chart(name: str, failures: Sequence[Failure]) -> Chart:
    counts = Counter(value for failure in failures if (value := str(getattr(failure, name))))
    order = sorted(counts.items(), key=lambda pair: pair[0], reverse=True)
    if name != "day":
        order.sort(key=lambda pair: -pair[1])
    largest = max(counts.values(), default=1)
    bars = [Bar(value, count, max(1, round(100 * count / largest))) for value, count in order[:_BARS]]
    return Chart(name, DIMENSIONS[name], bars, counts.total() - sum(bar.count for bar in bars))
