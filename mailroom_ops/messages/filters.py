"""Filter options that several commands have, and checks of the names in them: without a check, a misspelt
name would give an empty list, as if there were no such messages."""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from mailroom.campaigns.runs import Runs
from mailroom.channels.contracts import CONTRACTS
from mailroom.message import outcome
from mailroom.search.finder import Filter
from mailroom_ops.shared.deployed_stage import name as stage_name
from mailroom_ops.shared.screen import Refused
from mailroom_stacks.paths import CAMPAIGN_FILE, CAMPAIGNS

if TYPE_CHECKING:
    import boto3
    from types_boto3_dynamodb import DynamoDBClient

Channel = Annotated[str, typer.Option(help="Only messages of this channel.")]
Status = Annotated[str, typer.Option(help="Only messages with this status, such as bounced.")]
Template = Annotated[str, typer.Option(help="Only messages of this template.")]
Campaign = Annotated[str, typer.Option(help="Only messages of this campaign, or of one run: NAME#RUN.")]


def check_names(
    session: "boto3.Session", stage: str, criteria: Filter, statuses: Sequence[str] = get_args(outcome.Status)
) -> None:
    """Raise Refused if a list is empty because its status, channel, campaign or run does not exist.

    If the list has messages, do not call this function: invalid messages may have an unknown channel, and old
    messages a campaign that was deleted since.
    """
    names = {"status": (criteria.status, statuses), "channel": (criteria.event_type, CONTRACTS)}
    for field, (value, values) in names.items():
        if value and value not in values:
            raise Refused(f"{field}: {value!r:.40} is not one of {', '.join(values)}.")
    campaign = criteria.campaign
    if not campaign:
        return
    client, (name, _, run) = session.client("dynamodb"), campaign.partition("#")
    runs = _runs(client, stage)
    latest: list[str] = []
    with suppress(client.exceptions.ResourceNotFoundException):  # the stage has no campaigns
        latest = [entry.run for entry in runs.of_campaign(name)]
    if latest and run and runs.read(name, run) is None:
        raise Refused(f"campaign: {name} has no run {run!r:.60} in {stage}; use {', '.join(latest)}.")
    campaigns = sorted(path.parent.name for path in CAMPAIGNS.glob(f"*/{CAMPAIGN_FILE}"))
    if not latest and (run or name not in campaigns):
        listing = ", ".join(campaigns) or "none"
        raise Refused(f"campaign: {campaign!r:.60} had no run in {stage}; campaigns here: {listing}.")


def run_began(client: "DynamoDBClient", stage: str, campaign: str) -> float | None:
    """Return the time (epoch seconds) when the run of a filter such as `spring#2026` began. Return None if
    the filter does not name a run, or if the stage does not have the run or has lost it."""
    name, _, run = campaign.partition("#")
    entry = None
    with suppress(client.exceptions.ResourceNotFoundException):  # the stage has no campaigns
        entry = _runs(client, stage).read(name, run) if run else None
    return float(entry.begun_at) if entry and entry.starts else None


def _runs(client: "DynamoDBClient", stage: str) -> Runs:
    return Runs(client, stage_name(stage, "campaign-runs"))
