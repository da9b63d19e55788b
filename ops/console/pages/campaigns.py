"""Campaigns: how each stands in the stage, its runs and how far they are, and a stop."""

from functools import partial

from msgspec import Struct

from mailroom.campaigns.runs import Run
from ops.campaigns.answers import MEANING
from ops.campaigns.deployed import DeployedCampaigns
from ops.campaigns.files import CampaignFiles, campaign_rows
from ops.console.site import Answer, Asked, Goto, Shown, Site, link

LATEST = 10
ENDED = ("stopped", "expired")


class RunRow(Struct, frozen=True):
    """A run, how many of its recipients have an outcome, and what its state means. `accounted` None: the
    run's counts do not tell, because several starts put messages, or because some were counted twice."""

    run: Run
    accounted: int | None
    meaning: str

    @property
    def can_stop(self) -> bool:
        """Whether a stop changes something. How many have an outcome does not tell: some may count twice."""
        return self.run.state not in ENDED


def show(site: Site, asked: Asked) -> Answer:
    """All campaigns, or the runs of the one that is asked for. Raises Refused."""
    files, campaigns, name = CampaignFiles(), _campaigns(site), asked["campaign"]
    if not name:
        return Shown(template="campaigns.html", values={"rows": campaign_rows(files, campaigns)})
    files.read(name)
    runs = [_row(each) for each in campaigns.runs(name, LATEST)]
    return Shown(template="runs.html", title=f"Campaign {name}", values={"name": name, "runs": runs})


def stop(site: Site, asked: Asked) -> Answer:
    """What a stop does, and then does. Raises Refused."""
    name, campaigns = asked["campaign"], _campaigns(site)
    CampaignFiles().read(name)
    found = campaigns.run(name, asked["run"])
    if asked.form is not None:
        campaigns.stop(name, found.run)
        return Goto(link("/campaigns", campaign=name))
    return Shown(template="run_stop.html", title=f"Stop a run of {name}", values={"row": _row(found)})


def _campaigns(site: Site) -> DeployedCampaigns:
    return site.kept("campaigns", partial(DeployedCampaigns, site.session, site.stage))


def _row(run: Run) -> RunRow:
    done = run.composed + run.existed + run.opted_out + run.left_out + run.expired
    exact = len(run.starts) <= 1 and done <= run.recipients
    return RunRow(run, done if exact else None, MEANING[run.state])
