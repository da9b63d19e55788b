"""r"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from stacks.campaign_files import LANE, EnabledCampaign
from stacks.derived import PUT_SECONDS, collect_polling, compose_polling
from stacks.paths import TEMPLATES
from stacks.rules.audiences import broken_audience
from stacks.rules.databases import broken_certificates, broken_database
from stacks.sentences import number
from stacks.settings import Settings

UNTOPICAL = ("sms", "push")
"""Channels by which people may be written to without a topic: mailbox providers want links of bulk mail."""


def broken_campaigns(settings: Settings, campaigns: Sequence[EnabledCampaign]) -> Iterator[str]:
    """A sentence for each rule that the enabled campaigns break, each starting with the whole key."""
    for campaign in campaigns:
        yield from _channel(settings, campaign)
        yield from broken_audience(settings, campaign)
        yield from _time(settings, campaign)


def _channel(settings: Settings, campaign: EnabledCampaign) -> Iterator[str]:
    chosen = campaign.chosen
    row = settings.channels.get(chosen.channel)
    if row is None:
        yield (
            f"{campaign.key('channel')}: {chosen.channel!r} is no channel of the stage that campaigns may "
            f"use; use {' or '.join(settings.channels)}."
        )
        return
    if LANE not in row.lanes:
        yield (
            f"{campaign.key('channel')}: {chosen.channel!r} has no lane for campaigns; add "
            f"mailroom.{settings.stage}.channels.{chosen.channel}.lanes.{LANE}."
        )
    if chosen.topic is None and chosen.channel not in UNTOPICAL:
        yield f"{campaign.key('topic')}: is missing; {chosen.channel} needs what people can opt out of."
    if chosen.template is not None:
        yield from _template(campaign, chosen.template)


def _template(campaign: EnabledCampaign, template: str) -> Iterator[str]:
    folder = f"templates/{campaign.chosen.channel}"
    there = sorted(each.parent.name for each in (TEMPLATES.parent / folder).glob("[!_]*/body.*"))
    if template not in there:
        known = ", ".join(dict.fromkeys(there)) or "none"
        yield (
            f"{campaign.key('template')}: {template!r} is not below {folder}/; add it, or use one that is "
            f"there: {known}."
        )


def _time(settings: Settings, campaign: EnabledCampaign) -> Iterator[str]:
    """All of a batch has to be composed before the function's time is over."""
    people, compose = campaign.chosen.recipients_per_message, settings.campaigns.compose
    needed = people * compose.batch_size * PUT_SECONDS
    if needed >= compose.timeout_seconds:
        fits = int((compose.timeout_seconds - 1e-9) / (compose.batch_size * PUT_SECONDS))
        yield (
            f"{campaign.key('recipients_per_message')}: {people} x {PUT_SECONDS} s each x "
            f"campaigns.compose.batch_size {compose.batch_size} = {number(needed)} s must be under "
            f"campaigns.compose.timeout_seconds {compose.timeout_seconds}; use {fits} or less."
        )


def broken_databases(settings: Settings, campaigns: Sequence[EnabledCampaign], root: Path) -> Iterator[str]:
    """A sentence for each rule that a database breaks which enabled campaigns ask, each starting with the
    whole key. `root` is the folder that `ca_file` begins at."""
    for name, database in settings.databases.items():
        workers = _workers(name, settings, campaigns)
        if workers:
            key = f"mailroom.{settings.stage}.databases.{name}"
            people = [each.chosen.recipients_per_message for each in campaigns if name in each.composed]
            yield from broken_database(key, database, workers, max(people, default=0), settings.campaigns)
            yield from broken_certificates(key, database, root)


def _workers(name: str, settings: Settings, campaigns: Sequence[EnabledCampaign]) -> dict[str, int]:
    """How many of each function may ask the database at once."""
    workers = {}
    if any(name in each.collected for each in campaigns):
        workers["collect"] = collect_polling(settings.campaigns).maximum_concurrency
    if any(name in each.composed for each in campaigns):
        polling = compose_polling(settings.campaigns, [each.chosen.concurrency for each in campaigns])
        workers["compose"] = polling.maximum_concurrency
    return workers
