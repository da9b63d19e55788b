"""Pages of campaigns: their state in the stage, runs and results, and the start, pause and stop of a run."""

from functools import partial
from typing import Any

from mailroom.campaigns.runs import Run
from mailroom_ops.campaigns import files
from mailroom_ops.campaigns.deployed import DeployedCampaigns
from mailroom_ops.campaigns.ending import End, end_of
from mailroom_ops.campaigns.progress import CONFLICT, MEANING, STEPS, Progress
from mailroom_ops.campaigns.results import ResultsReader
from mailroom_ops.console.pages.overview import figures_at
from mailroom_ops.console.site import Answer, Request, Shown, Site, View
from mailroom_ops.shared.deeds import Deed

LATEST = 10


class RunRow(Progress, frozen=True):
    """Run with the values for its page."""

    meaning: str
    """Meaning of the run's state."""
    end: End | None
    """Estimated end of the run; None if it is unknown."""


class Campaigns(View, frozen=True):
    """Values of the list of campaigns."""

    rows: list[files.CampaignRow]


class Runs(View, frozen=True):
    """Values of the page of a campaign."""

    name: str
    runs: list[RunRow]
    enabled: bool
    conflict: str
    deeds: list[Deed]
    """Deeds on all runs of the campaign."""
    steps: tuple[str, ...] = STEPS


def show(site: Site, request: Request) -> Answer:
    """Show all campaigns, or the runs of one. Raises Refused."""
    campaigns, name = campaigns_at(site), request["campaign"]
    if not name:
        return Shown(Campaigns(files.campaign_rows(campaigns)))
    runs = campaigns.runs(name, LATEST)
    settings = files.settings_of(name, runs)
    rows = [run_row(site, run, settings) for run in runs]
    enabled = name in files.enabled(site.stage)
    return Shown(Runs(name, rows, enabled, CONFLICT, site.deeds_on(f"campaign#{name}")), name)


def campaigns_at(site: Site) -> DeployedCampaigns:
    """Return the deployed campaigns of the stage."""
    return site.kept("campaigns", partial(DeployedCampaigns, site.session, site.stage))


def run_row(site: Site, run: Run, settings: dict[str, Any]) -> RunRow:
    """Return the row of a run."""
    reader = site.kept("results", partial(ResultsReader, site.session, site.stage))
    progress, channel = Progress(run, reader.of(run, settings.get("topic"))), str(settings.get("channel"))
    end = end_of(site.session, progress, channel, partial(figures_at, site), site.clock)
    return RunRow(run, progress.results, MEANING[run.phase], end)
