"""Rules of campaigns: of the section that a stage has for them, and of each with the stage around it."""

from collections.abc import Iterator, Sequence

from stacks.campaign_files import LANE, EnabledCampaign
from stacks.derived import PUT_SECONDS, collect_rules, compose_rules
from stacks.paths import TEMPLATES
from stacks.rules.audiences import broken_audience
from stacks.rules.queues import broken_queue
from stacks.sentences import number
from stacks.settings import Settings

UNTOPICAL = ("sms", "push")
"""Channels by which people may be written to without a topic: mailbox providers want links of bulk mail."""


def broken_campaign_section(settings: Settings) -> Iterator[str]:
    """Rules of the section `campaigns`, whatever campaigns there are."""
    section, keep = settings.campaigns, settings.retention
    yield from broken_queue("campaigns.collect", section.collect, collect_rules(settings), settings)
    yield from broken_queue("campaigns.compose", section.compose, compose_rules(settings), settings)
    need = keep.queue_days + keep.dead_letter_days + keep.margin_days
    if section.run_days < need:
        yield (
            f"campaigns.run_days: {section.run_days} would forget a run whose messages can still be "
            f"redelivered; use {need} or more (queue_days {keep.queue_days} + dead_letter_days "
            f"{keep.dead_letter_days} + margin_days {keep.margin_days})."
        )


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
