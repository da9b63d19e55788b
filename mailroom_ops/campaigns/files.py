"""The campaigns of this project, and the state of each in a stage.

The folder `campaigns/` and cdk.json are read from this project; the stage may have been deployed from another
version of the project.
"""

import json
from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct, field

from mailroom.campaigns.runs import Run
from mailroom_ops.campaigns.deployed import DeployedCampaigns
from mailroom_ops.shared.refusals import NotDeployed, Refused
from mailroom_stacks.merging import merged
from mailroom_stacks.paths import CAMPAIGN_FILE, PROJECT


def names() -> list[str]:
    """Return the names of the project's campaigns, sorted."""
    return sorted(path.parent.name for path in PROJECT.glob(f"campaigns/*/{CAMPAIGN_FILE}"))


def read(name: str) -> dict[str, Any]:
    """Return a campaign's settings without validation, which synth does. Raises Refused if the campaign does
    not exist, or if its file cannot be parsed."""
    if name not in names():
        raise Refused(f"There is no campaign {name!r}; there are: {_listed(names())}.")
    # Imported here, because most pages of the console need no file of a campaign.
    import tomllib

    try:
        return tomllib.loads((PROJECT / "campaigns" / name / CAMPAIGN_FILE).read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Refused(f"campaigns/{name}/{CAMPAIGN_FILE} cannot be read: {error}.") from None


def settings_of(name: str, runs: Sequence[Run]) -> dict[str, Any]:
    """Return a campaign's settings like `read`. They are empty if the campaign has had `runs` and its folder
    was removed since."""
    return {} if runs and name not in names() else read(name)


def campaigns_of(stage: str) -> dict[str, Any]:
    """Return the settings of a stage's campaigns in cdk.json, without validation. Raises Refused if cdk.json
    does not have the stage."""
    stages: dict[str, Any] = json.loads((PROJECT / "cdk.json").read_text())["context"]["mailroom"]
    if stage not in stages:
        raise Refused(f"There is no stage {stage!r} in cdk.json; there are: {_listed(list(stages))}.")
    return dict(stages[stage].get("campaigns", {}))


def enabled(stage: str) -> list[str]:
    """Return the campaigns that a stage enables in cdk.json. Raises Refused if cdk.json does not have the
    stage."""
    return list(campaigns_of(stage).get("enabled", []))


def check(name: str, stage: str) -> None:
    """Raise Refused unless the campaign exists and the stage enables it in cdk.json."""
    read(name)
    campaigns = enabled(stage)
    if name not in campaigns:
        raise Refused(
            f"{name} is not enabled in {stage}; enabled are: {_listed(campaigns)}. "
            f"Add it to mailroom.{stage}.campaigns.enabled in cdk.json and deploy."
        )


Deployment = Literal["not_enabled", "not_deployed", "still_deployed", "enabled", "disabled"]
"""State of a campaign in a stage. disabled: the campaign's schedule was switched off. still_deployed:
cdk.json no longer enables the campaign, but its schedule still exists."""


class CampaignRow(Struct, frozen=True):
    """Campaign of the project, with its state in a stage."""

    campaign: str
    channel: str
    audience: str
    schedule: str
    """Cron and time zone from the campaign's settings, or `by hand`."""
    deployment: Deployment = field(name="standing")
    last_run: str
    """Latest run and its state; empty before the first run."""


def campaign_rows(campaigns: DeployedCampaigns, limit: int | None = None) -> list[CampaignRow]:
    """Return the campaigns of the project, up to a `limit`, with their state in the stage. Raises Refused if
    cdk.json does not have the stage, or if a campaign's file cannot be parsed."""
    section = campaigns_of(campaigns.stage)
    # The schedules are read even if no campaign is enabled: the stack of a disabled campaign keeps its
    # schedule until somebody deletes the stack.
    schedules = campaigns.schedules()
    rows = []
    for name in names()[:limit]:
        settings = merged(read(name), section.get("overrides", {}).get(name, {}))
        schedule = settings.get("schedule")
        deployment: Deployment = "still_deployed" if name in schedules else "not_enabled"
        last_run = ""
        if name in section.get("enabled", []):
            deployment = schedules.get(name, "not_deployed") if schedule else "enabled"
            try:
                campaigns.queue()
                last_run = " ".join(f"{run.run} {run.phase}" for run in campaigns.runs(name, 1))
            except NotDeployed:
                deployment = "not_deployed"
        row = CampaignRow(
            campaign=name,
            channel=str(settings.get("channel", "")),
            audience=str(settings.get("audience", {}).get("kind", "")),
            schedule=f"{schedule.get('cron')} {schedule.get('time_zone', 'UTC')}" if schedule else "by hand",
            deployment=deployment,
            last_run=last_run,
        )
        rows.append(row)
    return rows


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "none"
