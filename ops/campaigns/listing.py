"""The campaigns of this repository, a row each, and how they stand in a stage."""

from msgspec import Struct

from ops.campaigns.deployed import Campaigns
from ops.campaigns.files import CampaignFiles
from ops.campaigns.queues import NotDeployed


class Row(Struct, frozen=True):
    """One campaign: `stage` is how it stands there, `last_run` the latest run and its state ("": none)."""

    campaign: str
    channel: str
    audience: str
    schedule: str
    stage: str
    last_run: str


def rows(files: CampaignFiles, campaigns: Campaigns) -> list[Row]:
    """All of them, as the stage has them. Raises Refused."""
    enabled = files.enabled(campaigns.stage)
    schedules = campaigns.schedules() if enabled else {}
    return [_row(files, campaigns, name, schedules, enabled=name in enabled) for name in files.names()]


def _row(
    files: CampaignFiles, campaigns: Campaigns, name: str, schedules: dict[str, str], *, enabled: bool
) -> Row:
    settings = files.of_stage(name, campaigns.stage)
    schedule = settings.get("schedule")
    state, last_run = "not enabled", ""
    if enabled:
        state = schedules.get(name, "not deployed") if schedule else "enabled"
        try:
            last_run = " ".join(f"{each.run} {each.state}" for each in campaigns.runs(name, 1))
        except NotDeployed:
            state = "not deployed"
    return Row(
        campaign=name,
        channel=str(settings.get("channel", "")),
        audience=str(settings.get("audience", {}).get("kind", "")),
        schedule=f"{schedule.get('cron')} {schedule.get('time_zone', 'UTC')}" if schedule else "by hand",
        stage=state,
        last_run=last_run,
    )
