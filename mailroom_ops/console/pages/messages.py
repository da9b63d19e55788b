"""Messages: the newest, or those of somebody or of an id that is looked for."""

from functools import partial
from typing import get_args

from mailroom.channels.contracts import CONTRACTS
from mailroom.message.outcome import Status
from mailroom.search.finder import ANY, Filter, Finder, FoundPage
from mailroom_ops.console.site import Answer, Asked, Shown, Site
from mailroom_ops.messages.items import rules_of
from mailroom_ops.messages.search import asked as answered
from mailroom_ops.messages.search import finder_of, row_of, search_of, with_id
from mailroom_ops.messages.waiting import queued, unlisted
from mailroom_ops.requeue.stage import DeployedStage
from mailroom_ops.resend.resender import Resender

_NOTHING = FoundPage([], None, 0)


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
    known = {(each.id, each.event_type): each for each in (*by_id, *page.messages)}
    return Shown(
        template="messages.html",
        title=f"Messages to {text}" if text and not by_id else text or "Messages",
        values={
            "rows": [row_of(each) for each in known.values()],
            "cursor": page.cursor,
            "looked_at": page.looked_at,
            "filtered": wanted != ANY,
            "off": finder is None,
            "unlisted": unlisted(queued(site.session, site.stage) if empty else None),
            "person": bool(text) and not by_id,
            "statuses": [*get_args(Status)],
            "channels": list(CONTRACTS),
        },
    )


def deployed_at(site: Site) -> DeployedStage:
    """What is deployed of the stage. Raises NotDeployed, and botocore's errors."""
    return site.kept("deployed", lambda: DeployedStage.of(site.session, site.stage))


def resender_at(site: Site, *, force: bool) -> Resender:
    """Return what sends messages of the stage again. Raises NotDeployed, and botocore's errors."""
    rules = site.kept("rules", lambda: rules_of(site.session, site.stage))
    return Resender(deployed_at(site), rules.previews(site.client("s3")).look, force=force)


def finder_at(site: Site) -> Finder | None:
    """Finds the stage's messages; None: it has no search."""

    def make() -> Finder | None:
        return finder_of(site.session, site.stage) if search_of(site.session, site.stage) else None

    return site.kept("finder", make)
