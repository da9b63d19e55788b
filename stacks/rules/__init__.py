"""Checks at synth that the settings fit together. Each sentence has the key, the formula and its numbers."""

from collections.abc import Iterator

from stacks.derived import worker_rules
from stacks.rules.api import broken_api
from stacks.rules.campaigns import broken_campaign_section
from stacks.rules.channels import broken_channels
from stacks.rules.dead_letters import broken_dead_letters
from stacks.rules.fax import broken_fax
from stacks.rules.feedback import broken_feedback
from stacks.rules.pairs import broken_pairs
from stacks.rules.push import broken_push
from stacks.rules.queues import broken_queue
from stacks.rules.retention import broken_retention
from stacks.rules.sms import broken_sms
from stacks.rules.webhook import broken_webhook
from stacks.settings import Settings


def broken_rules(settings: Settings) -> Iterator[str]:
    """A sentence for each rule that `settings` break, each starting with the key below the stage."""
    keep, margin = settings.retention, settings.lease_margin_seconds
    yield from broken_retention(keep, fax=settings.fax is not None)
    yield from broken_channels(settings.channels, settings.mail, margin, keep)
    yield from broken_pairs(settings)
    yield from broken_queue("scheduled", settings.scheduled, worker_rules(settings.scheduled, margin), keep)
    if settings.fax:
        yield from broken_fax(settings.fax, margin, keep)
    yield from broken_webhook(settings.webhook, margin, keep)
    yield from broken_api(settings.api)
    if settings.sms:
        yield from broken_sms(settings.sms, settings.api, settings.channels.get("sms"))
    if settings.push:
        yield from broken_push(settings.push, settings.deployment.region)
    yield from broken_feedback(settings.feedback, settings.webhook, settings.monitoring, margin, keep)
    yield from broken_dead_letters(settings.dead_letters)
    yield from broken_campaign_section(settings.campaigns, margin, keep)
