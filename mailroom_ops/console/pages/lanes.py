"""Page of the lanes: their waiting messages, and a form that pauses or resumes a lane."""

from mailroom_ops.console.pages.messages import deployed_at
from mailroom_ops.console.site import Answer, Goto, Request, Shown, Site, View, link
from mailroom_ops.messages.deployed_lanes import DeployedLanes, Lane
from mailroom_ops.shared.deeds import Deed


class Lanes(View, frozen=True):
    """Values of the page of the lanes."""

    lanes: list[Lane]
    deeds: list[Deed]


def show(site: Site, request: Request) -> Answer:
    """Show the lanes, or pause or resume the lane of the form. Raises Refused."""
    lanes = DeployedLanes(deployed_at(site))
    if request.form is None:
        return Shown(Lanes(lanes.read(), site.deeds_on("lanes")))
    lanes.pause(request["channel"], request["lane"], None if request["resume"] else request.typed("why"))
    return Goto(link("/lanes"))
