"""Pages of messages: the newest ones, the messages of a recipient or an id, or those of a pasted list."""

from collections import defaultdict
from collections.abc import Sequence

from msgspec import structs

from mailroom.channels.contracts import CONTRACTS
from mailroom.ledger.status_reader import LedgerReader
from mailroom.search.finder import Finder
from mailroom_ops.console.site import Answer, Download, Request, Shown, Site, View
from mailroom_ops.messages.filters import MessageFilter, bounds
from mailroom_ops.messages.items import Rules, rules_of
from mailroom_ops.messages.lookup import PARTS, FoundAnswer, Lookup, MessageRow, finder_of, row_of
from mailroom_ops.messages.views import reader_of
from mailroom_ops.messages.waiting import unlisted
from mailroom_ops.shared.refusals import Refused
from mailroom_ops.shared.stage_queues import DeployedStage

MAX_LINES = 1_000
"""Maximum number of lines of a pasted list, which are looked up within one request."""


class Messages(View, frozen=True):
    """Values of a list of messages."""

    found: FoundAnswer
    filters: int
    """Number of the fields of the filter that are set."""
    off: bool
    """Whether the stage has no search."""
    unlisted: str
    alike: list[list[MessageRow]]
    """Messages to the same person within a day that have the same channel, template and subject."""
    parts_hint: str = PARTS
    statuses: tuple[str, ...] = MessageFilter.statuses
    channels: tuple[str, ...] = tuple(CONTRACTS)


class Selected(View, frozen=True):
    """Values of the page of a pasted list."""

    found: list[MessageRow] | None
    """Messages of the list; None before a list was pasted."""
    missing: list[str]
    """Entries of the list without a message."""


def show(site: Site, request: Request) -> Answer:
    """Show a page of messages, or download all of them as CSV. Raises Refused for an invalid cursor or
    time."""
    selection, finder, text = filter_of(site, request), finder_at(site), request.typed("q")
    # Parts of ids would tell the addresses in them, letter by letter.
    lookup = Lookup(site.session, site.stage, finder, text, selection, parts=request.contents)
    answer = lookup.answer(request["cursor"])
    if request["csv"]:
        from mailroom_ops.messages.failures_csv import csv_lines

        return Download(f"messages {site.stage}.csv", csv_lines(lookup.every()))
    alike = _alike(answer.messages) if answer.by == "recipient" else []
    filters = sum(map(bool, structs.astuple(selection)))
    view = Messages(answer, filters, finder is None, unlisted(answer.queued), alike)
    return Shown(view, f"Messages to {text}" if answer.by == "recipient" else text or "Messages")


def pasted(site: Site, request: Request) -> Answer:
    """Show the form for a list and, once a list was pasted, its messages. Raises Refused."""
    lines = request["list"].splitlines()
    if request.form is None or not any(map(str.strip, lines)):
        return Shown(Selected(None, []))
    if len(lines) > MAX_LINES:
        raise Refused(f"Paste at most {MAX_LINES:,} lines, or use mailroom messages list --ids with a file.")
    from mailroom_ops.messages.listed import listed  # imported here, because few requests need it

    messages, missing = listed(reader_at(site), finder_at(site), request["list"], filter_of(site, request))
    return Shown(Selected([*map(row_of, messages)], missing))


def _alike(rows: Sequence[MessageRow]) -> list[list[MessageRow]]:
    groups = defaultdict[tuple[str | None, ...], list[MessageRow]](list)
    for row in rows:
        if row.template or row.subject:
            groups[row.event_type, row.template, row.subject, (row.put_at or "")[:10]].append(row)
    return [group for group in groups.values() if len(group) > 1]


def filter_of(site: Site, request: Request) -> MessageFilter:
    """Return the filter that a person typed. Raises Refused for an invalid time."""
    span = bounds(request.typed("since"), request.typed("until"), site.clock())
    names = (name for name in MessageFilter.__struct_fields__ if name not in ("since", "until"))
    return MessageFilter(**{name: request.typed(name) for name in names}, **span)


def deployed_at(site: Site) -> DeployedStage:
    """Return the deployed stage. Raises NotDeployed, and botocore's errors."""
    return site.kept("deployed", lambda: DeployedStage.of(site.session, site.stage))


def reader_at(site: Site) -> LedgerReader:
    """Return the reader of the stage's messages by their ids."""
    return site.kept("reader", lambda: reader_of(site.session, site.stage))


def rules_at(site: Site) -> Rules:
    """Return the rules by which the stage validates items."""
    return site.kept("rules", lambda: rules_of(site.session, site.stage))


def finder_at(site: Site) -> Finder | None:
    """Return the finder of the stage, or None for a stage without search."""
    return site.kept("finder", lambda: finder_of(site.session, site.stage))
