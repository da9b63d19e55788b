"""Page of messages: the newest ones, or the messages of a recipient or an id."""

from collections import defaultdict
from collections.abc import Sequence

from msgspec import structs

from mailroom.channels.contracts import CONTRACTS
from mailroom.search.finder import Finder
from mailroom_ops.console.site import Answer, Download, Request, Shown, Site, View
from mailroom_ops.messages.filters import MessageFilter, bounds
from mailroom_ops.messages.items import Rules, rules_of
from mailroom_ops.messages.lookup import PARTS, FoundAnswer, Lookup, MessageRow, finder_of
from mailroom_ops.messages.waiting import unlisted
from mailroom_ops.shared.stage_queues import DeployedStage


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


def rules_at(site: Site) -> Rules:
    """Return the rules by which the stage validates items."""
    return site.kept("rules", lambda: rules_of(site.session, site.stage))


def finder_at(site: Site) -> Finder | None:
    """Return the finder of the stage, or None for a stage without search."""
    return site.kept("finder", lambda: finder_of(site.session, site.stage))
