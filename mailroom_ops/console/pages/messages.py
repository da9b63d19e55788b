"""Messages: the newest, or those of somebody or of an id that is looked for."""

from functools import partial
from typing import get_args

from mailroom.channels.contracts import CONTRACTS
from mailroom.message.outcome import Status
from mailroom.search.finder import ANY, Filter, Finder, FoundPage
from mailroom_ops.console.site import Answer, Asked, Shown, Site, View
from mailroom_ops.messages.filters import check_names
from mailroom_ops.messages.search import MessageRow, finder_of, row_of, search_of, with_id
from mailroom_ops.messages.search import asked as answered
from mailroom_ops.messages.waiting import queued, unlisted
from mailroom_ops.requeue.stage import DeployedStage

_NOTHING = FoundPage([], None)


class Messages(View, frozen=True):
    """Values of a list of messages."""

    rows: list[MessageRow]
    cursor: str | None
    looked_back_to: str | None
    filtered: bool
    off: bool
    """Whether the stage has no search."""
    unlisted: str
    person: bool
    """Whether the text in the search field is a recipient."""
    statuses: tuple[str, ...] = get_args(Status)
    channels: tuple[str, ...] = tuple(CONTRACTS)


def show(site: Site, asked: Asked) -> Answer:
    """A page of messages. Raises Refused for a cursor that is none."""
    wanted = Filter(*(asked.typed(name) for name in Filter.__struct_fields__))
    cursor, text = asked["cursor"], asked.typed("q")
    finder = finder_at(site)
    page = _NOTHING
    if finder is not None:
        ask = partial(finder.to, text) if text else finder.newest
        page = answered(partial(ask, wanted, cursor))
    by_id = with_id(site.session, site.stage, text, wanted) if text and not cursor else []
    empty = not (by_id or page.messages or page.cursor)
    if empty:
        check_names(site.session, site.stage, wanted.event_type, wanted.campaign)
    known = {(each.id, each.event_type): each for each in (*by_id, *page.messages)}
    person = bool(text) and not by_id
    view = Messages(
        [row_of(message) for message in known.values()],
        page.cursor,
        page.looked_back_to,
        wanted != ANY,
        finder is None,
        unlisted(queued(site.session, site.stage) if empty else None),
        person,
    )
    return Shown(view, f"Messages to {text}" if person else text or "Messages")


def deployed_at(site: Site) -> DeployedStage:
    """What is deployed of the stage. Raises NotDeployed, and botocore's errors."""
    return site.kept("deployed", lambda: DeployedStage.of(site.session, site.stage))


def finder_at(site: Site) -> Finder | None:
    """Finds the stage's messages; None: it has no search."""

    def make() -> Finder | None:
        return (
            finder_of(site.session, site.stage, site.clock) if search_of(site.session, site.stage) else None
        )

    return site.kept("finder", make)
