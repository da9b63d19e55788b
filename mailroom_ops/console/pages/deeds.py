"""Page of the deeds: who has changed something in the stage, when and why."""

from itertools import islice

from mailroom_ops.console.site import NEWEST_DEEDS as LISTED
from mailroom_ops.console.site import Answer, Request, Shown, Site, View
from mailroom_ops.shared.deeds import LIST, Deed


class Deeds(View, frozen=True):
    """Values of the list of deeds. `cursor` is that of the next page; empty on the last page."""

    deeds: list[Deed]
    cursor: str


def show(site: Site, request: Request) -> Answer:
    """Show a page of the deeds that contain each word of the request's text."""
    words, newest = request["text"].casefold().split(), site.deeds.of(LIST, request["cursor"] or "~")
    selected = (
        deed
        for deed in newest
        if all(word in request.shown(f"{deed} {deed.words}").casefold() for word in words)
    )
    deeds = [*islice(selected, LISTED + 1)]
    return Shown(Deeds(deeds[:LISTED], deeds[LISTED].cursor if len(deeds) > LISTED else ""))
