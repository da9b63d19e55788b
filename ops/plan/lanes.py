"""A stage's lanes, as its settings in cdk.json make them: what a plan is made of."""

import copy
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ops.plan.model import Senders
from stacks.paths import CAMPAIGNS, ROOT
from stacks.settings.channels import LaneRow
from stacks.settings.enabled_campaigns import read_campaigns
from stacks.settings.fax import fax_rules
from stacks.settings.load import load
from stacks.settings.queues import DAY
from stacks.settings.sentences import SettingsError
from stacks.settings.stage import Settings
from stacks.settings.webhook import webhook_rules

CDK_JSON = ROOT / "cdk.json"
LEAST_WORKERS = 2
"""Lambda's lowest MaximumConcurrency."""


@dataclass(frozen=True)
class Keys:
    """Where a lane's numbers are set, below the stage; None: they are not, or are one for a reason."""

    workers: str
    batch: str | None
    rate: str | None
    kept: str = "retention.queue_days"


@dataclass(frozen=True)
class Lane:
    """One lane of one channel. It may send its `share` of the `allowed` messages a second (None: as many as
    it can)."""

    channel: str
    name: str
    queue: str
    workers: int
    batch: int
    allowed: float | None
    share: float
    memory_mb: int
    room: int
    """The seconds that a message may wait for its turn, so that SQS still keeps it for all its retries."""
    kept_days: int
    """How long the queue keeps a message."""
    keys: Keys
    fifo: bool = False

    @property
    def senders(self) -> Senders:
        """Who sends them."""
        return Senders(self.workers, self.batch, self.allowed * self.share if self.allowed else None)


class Stages:
    """The context of cdk.json, or what it would be with a number changed, and the folder of campaigns."""

    def __init__(self, context: Mapping[str, Any], campaigns: Path = CAMPAIGNS) -> None:
        self._context = context
        self._campaigns = campaigns

    @classmethod
    def of(cls, path: Path = CDK_JSON) -> "Stages":
        """Those of the repository."""
        return cls(json.loads(path.read_text())["context"]["mailroom"])

    def lane(self, stage: str, channel: str, name: str) -> Lane:
        """A lane of a stage. Raises SettingsError with what there is instead."""
        found = list(_lanes(load(self._context, stage)))
        channels = dict.fromkeys(each.channel for each in found)
        if channel not in channels:
            raise SettingsError(f"channel: {channel!r} is not in {stage}; use one of {', '.join(channels)}.")
        lanes = {each.name: each for each in found if each.channel == channel}
        if name not in lanes:
            raise SettingsError(f"lane: {channel} has no {name!r} in {stage}; use {' or '.join(lanes)}.")
        return lanes[name]

    def composing(self, stage: str) -> int:
        """How many functions compose campaigns at once: of those that are enabled, the smallest concurrency
        governs. Raises SettingsError."""
        enabled = read_campaigns(load(self._context, stage), self._campaigns)
        return min((each.chosen.concurrency for each in enabled), default=LEAST_WORKERS)

    def changed(self, stage: str, key: str, value: float) -> "Stages":
        """The same with another value of a setting below the stage."""
        context = copy.deepcopy(dict(self._context))
        *path, last = key.split(".")
        section = context[stage]
        for each in path:
            section = section.setdefault(each, {})
        section[last] = value
        return Stages(context, self._campaigns)


def _lanes(settings: Settings) -> Iterator[Lane]:
    for row in settings.lane_rows():
        yield _row(settings, row)
    yield from _fax(settings)
    yield _webhook(settings)


def _row(settings: Settings, row: LaneRow) -> Lane:
    channel = f"channels.{row.event_type}"
    lane = f"{channel}.lanes.{row.lane}"
    return Lane(
        channel=row.event_type,
        name=row.lane,
        queue=row.queue,
        workers=row.polling.maximum_concurrency,
        batch=row.polling.batch_size,
        allowed=row.channel.messages_per_second,
        share=row.polling.share,
        memory_mb=row.channel.memory_mb,
        room=settings.retention.queue_days * DAY - row.rules.longest_stay,
        kept_days=settings.retention.queue_days,
        keys=Keys(f"{lane}.maximum_concurrency", f"{lane}.batch_size", f"{channel}.messages_per_second"),
    )


def _fax(settings: Settings) -> Iterator[Lane]:
    fax = settings.fax
    if fax is None:
        return
    kept = settings.retention.days_of(fifo=True)
    yield Lane(
        channel="fax",
        name="normal",
        queue="fax",
        workers=fax.concurrent_calls,
        batch=1,
        allowed=fax.calls_per_second,
        share=1,
        memory_mb=fax.memory_mb,
        room=kept * DAY - fax_rules(fax, settings.lease_margin_seconds).longest_stay,
        kept_days=kept,
        keys=Keys("fax.concurrent_calls", None, "fax.calls_per_second", "retention.dead_letter_days"),
        fifo=True,
    )


def _webhook(settings: Settings) -> Lane:
    webhook = settings.webhook
    return Lane(
        channel="webhook",
        name="normal",
        queue="webhook",
        workers=webhook.maximum_concurrency,
        batch=webhook.batch_size,
        allowed=None,
        share=1,
        memory_mb=webhook.memory_mb,
        room=settings.retention.queue_days * DAY
        - webhook_rules(settings.webhook, settings.lease_margin_seconds).longest_stay,
        kept_days=settings.retention.queue_days,
        keys=Keys("webhook.maximum_concurrency", None, None),
    )
