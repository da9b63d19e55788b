"""Pages of failures: messages that failed, bounced, were not delivered or caused a complaint, as a list, and
as bar charts that filter the list."""

import itertools
import json
from collections import Counter
from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from mailroom_ops.console.pages.messages import resender_at
from mailroom_ops.console.site import Answer, Download, Goto, Request, Shown, Site, View, link
from mailroom_ops.messages.failed_messages import Failure, FailureFilter, choose, failed, failure_of
from mailroom_ops.messages.failures_csv import csv_lines
from mailroom_ops.messages.filters import bounds_of_failures, check_names
from mailroom_ops.repair.resender import ResentMessage
from mailroom_ops.shared.screen import Refused
from mailroom_ops.shared.selected_messages import MessageRef

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


class FailuresResend(View, frozen=True):
    """Values of the question before failures are sent again."""

    ready: list[ResentMessage]
    left: list[ResentMessage]
    keys: str


def show(site: Site, request: Request) -> Answer:
    """Show the page, or download all its failures as CSV. Raises Refused for an invalid span."""
    failures, left_out = _found(site, request)
    if request["csv"]:
        selection = choose(site.client("dynamodb"), site.stage, _filter(site, request), full=True)
        return Download(f"failures {site.stage}.csv", csv_lines(selection))
    filters = {name: request[name] for name in DIMENSIONS}
    titled = {DIMENSIONS[name]: (name, value) for name, value in filters.items() if value}
    charts = [chart for name in DIMENSIONS if (chart := _chart(name, failures)).bars]
    since, limit = request.typed("since"), MOST if request["more"] else QUICK
    return Shown(Failures(since, SPANS, charts, titled, len(failures), limit, left_out, failures[:LISTED]))


def resend(site: Site, request: Request) -> Answer:
    """List the newest failures that can be sent again, and then send them. Messages that may arrive twice are
    left out, because an operator has to check each of them. Raises Refused."""
    resender = resender_at(site, force=False)
    if request.form is None:
        failures, _ = _found(site, request)
        refs = [MessageRef(failure.id, failure.event_type) for failure in failures[:LISTED]]
    else:
        refs = _refs(request["keys"])
    looked = [_alone(message) for message in resender.evaluate(refs)]
    ready = [message for message in looked if message.result == "ready"]
    unready = [message for message in looked if message.result != "ready"]
    if request.form is None:
        keys = [[message.id, message.event_type] for message in ready]
        return Shown(FailuresResend(ready, unready, json.dumps(keys)), "Send these again?")
    sent = [message for message in resender.send(ready) if message.result == "resent"]
    query = {name: value for name, value in request.query.items() if name != "live"}
    return Goto(link("/failures", **{**query, "done": str(len(sent)), "left": str(len(looked) - len(sent))}))


def _alone(message: ResentMessage) -> ResentMessage:
    return message.refused("it may arrive twice; open it to decide") if message.may_arrive_twice else message


def _refs(text: str) -> list[MessageRef]:
    try:
        keys = msgspec.json.decode(text, type=Annotated[list[tuple[str, str]], Meta(max_length=LISTED)])
    except msgspec.DecodeError:
        raise Refused("The form is incomplete. Open the failures again.") from None
    return [MessageRef(*key) for key in keys]


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
    return FailureFilter(**{name: request[name] for name in DIMENSIONS}, **span)


def _chart(name: str, failures: Sequence[Failure]) -> Chart:
    counts = Counter(value for failure in failures if (value := str(getattr(failure, name))))
    order = sorted(counts.items(), key=lambda pair: pair[0], reverse=True)
    if name != "day":
        order.sort(key=lambda pair: -pair[1])
    largest = max(counts.values(), default=1)
    bars = [Bar(value, count, max(1, round(100 * count / largest))) for value, count in order[:_BARS]]
    return Chart(name, DIMENSIONS[name], bars, counts.total() - sum(bar.count for bar in bars))
