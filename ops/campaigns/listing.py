"""The campaigns of this repository, a row each, and how they stand in a stage."""

from typing import Literal

from msgspec import Struct

from ops.campaigns.deployed import Campaigns, Schedules
from ops.campaigns.files import CampaignFiles
from ops.screen import NotDeployed

Standing = Literal["not_enabled", "not_deployed", "still_deployed", "enabled", "disabled"]
"""How a campaign stands in a stage. disabled: its schedule was switched off. still_deployed: the settings do
not enable it any more, and its schedule goes on."""


class Row(Struct, frozen=True):
    """One campaign: `standing` is how it stands in the stage, `last_run` the latest run and its state ("":
    none)."""

    campaign: str
    channel: str
    audience: str
    schedule: str
    standing: Standing
    last_run: str


def rows(files: CampaignFiles, campaigns: Campaigns) -> list[Row]:
    """All of them, as the stage has them. Raises Refused."""
    enabled = files.enabled(campaigns.stage)
    # Also where none is enabled: a stack that has left the app goes on until somebody deletes it.
    schedules = campaigns.schedules()
    return [_row(files, campaigns, name, schedules, enabled=name in enabled) for name in files.names()]


def _row(
    files: CampaignFiles, campaigns: Campaigns, name: str, schedules: Schedules, *, enabled: bool
) -> Row:
    settings = files.of_stage(name, campaigns.stage)
    schedule = settings.get("schedule")
    standing: Standing = "still_deployed" if name in schedules else "not_enabled"
    last_run = ""
    if enabled:
        standing = schedules.get(name, "not_deployed") if schedule else "enabled"
        try:
            last_run = " ".join(f"{each.run} {each.state}" for each in campaigns.runs(name, 1))
        except NotDeployed:
            standing = "not_deployed"
    return Row(
        campaign=name,
        channel=str(settings.get("channel", "")),
        audience=str(settings.get("audience", {}).get("kind", "")),
        schedule=f"{schedule.get('cron')} {schedule.get('time_zone', 'UTC')}" if schedule else "by hand",
        standing=standing,
        last_run=last_run,
    )
