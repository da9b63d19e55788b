"""Messages: the newest, or those of somebody or of an id that is looked for."""

from typing import get_args

from mailroom.channels.contracts import CONTRACTS
from mailroom.message.outcome import Status
from mailroom.search.finder import ANY, Filter, Finder
from mailroom_ops.console.site import Answer, Asked, Shown, Site, View
from mailroom_ops.messages.filters import check_names
from mailroom_ops.messages.search import PARTS, MessageRow, finder_of, page_of, row_of, search_of
from mailroom_ops.messages.waiting import queued, unlisted
from mailroom_ops.requeue.stage import DeployedStage


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
    parts_hint: str
    """Sentence about parts of addresses; empty if the text is a recipient or an id."""
    statuses: tuple[str, ...] = get_args(Status)
    channels: tuple[str, ...] = tuple(CONTRACTS)


def show(site: Site, asked: Asked) -> Answer:
    """A page of messages. Raises Refused for a cursor that is none."""
    wanted = Filter(*(asked.typed(name) for name in Filter.__struct_fields__))
    cursor, text = asked["cursor"], asked.typed("q")
    finder = finder_at(site)
    page, by = page_of(site.session, site.stage, finder, text, wanted, cursor)
    empty = not (page.messages or page.cursor)
    if empty:
        check_names(site.session, site.stage, wanted)
    person = bool(text) and by == "recipient"
    view = Messages(
        [row_of(message) for message in page.messages],
        page.cursor,
        page.looked_back_to,
        wanted != ANY or by == "part",
        finder is None,
        unlisted(queued(site.session, site.stage) if empty else None),
        person,
        PARTS if by == "part" else "",
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
