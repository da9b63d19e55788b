"""Rules of campaigns: of the section that a stage has for them, and of each with the stage around it."""

from collections.abc import Iterator

from stacks.derived import collect_rules, compose_rules
from stacks.rules.queues import broken_queue
from stacks.settings import Campaigns, Retention


def broken_campaign_section(section: Campaigns, lease_margin: int, keep: Retention) -> Iterator[str]:
    """Rules of the section `campaigns`, whatever campaigns there are."""
    yield from broken_queue("campaigns.collect", section.collect, collect_rules(section, lease_margin), keep)
    yield from broken_queue("campaigns.compose", section.compose, compose_rules(section, lease_margin), keep)
    need = keep.queue_days + keep.dead_letter_days + keep.margin_days
    if section.run_days < need:
        yield (
            f"campaigns.run_days: {section.run_days} would forget a run whose messages can still be "
            f"redelivered; use {need} or more (queue_days {keep.queue_days} + dead_letter_days "
            f"{keep.dead_letter_days} + margin_days {keep.margin_days})."
        )
