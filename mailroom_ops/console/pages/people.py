"""Pages of a person: suppressions and opt-outs, messages, and the erasure of all data."""

from collections.abc import Sequence

from mailroom_ops.console.pages.messages import finder_at
from mailroom_ops.console.site import Answer, Request, Shown, Site, View
from mailroom_ops.messages.lookup import MessageRow, row_of
from mailroom_ops.people.opt_outs import OptedOut, OptOuts
from mailroom_ops.people.suppression_lists import CHANNELS, Lists, SuppressedRecipient
from mailroom_ops.shared.deeds import Deed

LISTED = 10
_DONE = {
    "lift": "{who} gets {channel} again.",
    "suppress": "{who} gets no {channel} any more.",
    "opt-in": "{who} gets {topic} again.",
    "opt-out": "{who} gets no {topic} any more.",
}
"""Sentences that are shown after a change."""


class People(View, frozen=True):
    """Values of the page of a person, and of the form that asks for one."""

    who: str = ""
    suppressions: Sequence[SuppressedRecipient] = ()
    opt_outs: Sequence[OptedOut] = ()
    rows: Sequence[MessageRow] = ()
    off: bool = False
    """Whether the stage has no search."""
    done: str = ""
    deeds: Sequence[Deed] = ()
    """Deeds on the person, if the stage has a search: without it, all persons are one thing."""
    channels: tuple[str, ...] = CHANNELS


def show(site: Site, request: Request) -> Answer:
    """Show a person's suppressions, opt-outs and newest messages."""
    recipient = request.typed("recipient")
    if not recipient:
        return Shown(People())
    finder = finder_at(site)
    done = _DONE.get(request["done"], "").format(**fields_of(request))
    suppressions = lists_at(site).find(recipient)
    opt_outs = opt_outs_at(site).of(recipient)
    rows = [row_of(message) for message in finder.to(recipient).messages[:LISTED]] if finder else []
    channels = tuple(channel for channel in CHANNELS if (channel == "mail") == ("@" in recipient))
    deeds = site.deeds_on(site.deeds.person(recipient)) if finder else []
    off = finder is None
    return Shown(People(recipient, suppressions, opt_outs, rows, off, done, deeds, channels), recipient)


def lists_at(site: Site) -> Lists:
    """Return the suppression lists of the stage."""
    return site.kept("lists", lambda: Lists(site.session, site.stage))


def opt_outs_at(site: Site) -> OptOuts:
    """Return the opt-outs of the stage."""
    return site.kept("opt-outs", lambda: OptOuts(site.session, site.stage))


def fields_of(request: Request) -> dict[str, str]:
    """Return the fields of the sentences about a change."""
    return {"who": request.typed("recipient"), "channel": request["channel"], "topic": request.typed("topic")}
