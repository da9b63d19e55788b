"""A stage's lanes, as its settings in cdk.json make them.

A worker is a function that takes one batch after another. It submits, records the outcome, and waits after
each submit, so that all workers together keep to the rate (see `mailroom.delivery.worker`). All times are in
seconds.
"""

import copy
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mailroom.channels.channel import Estimate
from mailroom_ops.estimates.prices import BETWEEN, BY_RESEND, estimate_of
from mailroom_ops.estimates.quotas import WHOLE_VCPU_MB
from mailroom_stacks.paths import CAMPAIGNS, CDK_JSON
from mailroom_stacks.settings.channels import LaneRow
from mailroom_stacks.settings.enabled_campaigns import read_campaigns
from mailroom_stacks.settings.fax import fax_rules
from mailroom_stacks.settings.load import load
from mailroom_stacks.settings.queues import DAY
from mailroom_stacks.settings.sentences import SettingsError
from mailroom_stacks.settings.stage import Settings
from mailroom_stacks.settings.webhook import webhook_rules


@dataclass(frozen=True)
class Assumed:
    """What no setting says: `latency` is a message's time in a sender with a whole vCPU to itself, for the
    provider's answer and the ledger's writes; `computing` is the part of it that takes the vCPU; `between` is
    the time from one invocation of a worker to its next."""

    latency: float
    between: float
    computing: float

    @classmethod
    def of(cls, channel: str, latency: float | None = None, between: float = BETWEEN) -> "Assumed":
        """What a channel's row of the estimates says, unless somebody says otherwise."""
        usual = estimate_of(channel)
        return cls(usual.latency if latency is None else latency, between, usual.computing)


@dataclass(frozen=True)
class SettingKeys:
    """Where a lane's numbers are set, below the stage; None: they are not, or are one for a reason."""

    workers: str
    batch: str | None
    rate: str | None
    kept: str | None = "retention.queue_days"
    share: str | None = None
    at_once: str | None = None


@dataclass(frozen=True, kw_only=True)
class ConfiguredLane:
    """One lane of one channel."""

    channel: str
    name: str = "normal"
    queue: str
    workers: int
    """Workers at once."""
    batch: int
    """Messages of one invocation."""
    allowed: float | None = None
    """Messages a second of the channel; None if they are unlimited."""
    share: float = 1
    """The lane's part of `allowed`."""
    memory_mb: int
    room: int
    """The seconds that a message may wait for its turn, so that SQS still keeps it for all its retries."""
    kept_days: int
    """How long the queue keeps a message."""
    keys: SettingKeys
    fifo: bool = False
    at_once: int = 1
    """Messages that a worker delivers at a time."""
    by_resend: bool = False
    """Whether Resend sends its mails."""

    @property
    def estimate(self) -> Estimate:
        """The estimate of one message of the lane."""
        return BY_RESEND if self.by_resend else estimate_of(self.channel)

    @property
    def rate(self) -> float | None:
        """The messages a second that all workers together keep to; None if they are unlimited."""
        return self.allowed * self.share if self.allowed else None

    @property
    def vcpu(self) -> float:
        """A worker's part of a vCPU; Python computes on one at most."""
        return min(1, self.memory_mb / WHOLE_VCPU_MB)

    @property
    def pace(self) -> float:
        """The gap between one worker's submits."""
        return self.workers / self.rate if self.rate else 0

    @property
    def rounds(self) -> int:
        """The most messages that one thread delivers in an invocation."""
        return math.ceil(self.batch / self.at_once)


class Stages:
    """The context of cdk.json, or what it would be with a number changed, and the folder of campaigns."""

    def __init__(self, context: Mapping[str, Any], campaigns: Path = CAMPAIGNS) -> None:
        self._context = context
        self._campaigns = campaigns

    @classmethod
    def of(cls, path: Path | None = None) -> "Stages":
        """As the file has them: that of the repository, where none is named."""
        return cls(json.loads((path or CDK_JSON).read_text())["context"]["mailroom"])

    def settings(self, stage: str) -> Settings:
        """A stage's settings. Raises SettingsError."""
        return load(self._context, stage)

    def lanes(self, stage: str) -> list[ConfiguredLane]:
        """All lanes of a stage. Raises SettingsError."""
        settings = self.settings(stage)
        rows = [_of_row(settings, row) for row in settings.lane_rows()]
        return [*rows, *_of_fax(settings), _of_webhook(settings)]

    def lane(self, stage: str, channel: str, name: str) -> ConfiguredLane:
        """A lane of a stage. Raises SettingsError with what there is instead."""
        found = self.lanes(stage)
        channels = dict.fromkeys(each.channel for each in found)
        if channel not in channels:
            raise SettingsError(f"channel: {channel!r} is not in {stage}; use one of {', '.join(channels)}.")
        lanes = {each.name: each for each in found if each.channel == channel}
        if name not in lanes:
            raise SettingsError(f"lane: {channel} has no {name!r} in {stage}; use {' or '.join(lanes)}.")
        return lanes[name]

    def composing(self, stage: str) -> int:
        """How many functions compose campaigns at once: of those that are enabled, the smallest concurrency
        governs; 0 without any. Raises SettingsError."""
        enabled = read_campaigns(self.settings(stage), self._campaigns)
        return min((each.chosen.concurrency for each in enabled), default=0)

    def changed(self, stage: str, key: str, value: Any) -> "Stages":
        """These stages with another value of one setting; `key` is its path below the stage."""
        context = copy.deepcopy(dict(self._context))
        *path, last = key.split(".")
        section = context[stage]
        for each in path:
            section = section.setdefault(each, {})
        section[last] = value
        return Stages(context, self._campaigns)


def _of_row(settings: Settings, row: LaneRow) -> ConfiguredLane:
    channel = f"channels.{row.event_type}"
    lane = f"{channel}.lanes.{row.lane}"
    return ConfiguredLane(
        channel=row.event_type,
        name=row.lane,
        queue=row.queue,
        workers=row.polling.maximum_concurrency,
        batch=row.polling.batch_size,
        allowed=row.channel.messages_per_second,
        share=row.polling.share,
        by_resend=row.event_type == "mail" and settings.mail.provider == "resend",
        memory_mb=row.channel.memory_mb,
        room=settings.retention.queue_days * DAY - row.rules.longest_stay,
        kept_days=settings.retention.queue_days,
        keys=SettingKeys(
            f"{lane}.maximum_concurrency",
            f"{lane}.batch_size",
            f"{channel}.messages_per_second",
            share=f"{lane}.share",
            at_once=f"{channel}.submits_at_once",
        ),
        at_once=row.channel.submits_at_once,
    )


def _of_fax(settings: Settings) -> Iterator[ConfiguredLane]:
    fax = settings.fax
    if fax is None:
        return
    kept = settings.retention.days_of(fifo=True)
    yield ConfiguredLane(
        channel="fax",
        queue="fax",
        workers=fax.concurrent_calls,
        batch=1,
        allowed=fax.calls_per_second,
        memory_mb=fax.memory_mb,
        room=kept * DAY - fax_rules(fax, settings.lease_margin_seconds).longest_stay,
        kept_days=kept,
        keys=SettingKeys("fax.concurrent_calls", None, "fax.calls_per_second", None),
        fifo=True,
    )


def _of_webhook(settings: Settings) -> ConfiguredLane:
    webhook = settings.webhook
    return ConfiguredLane(
        channel="webhook",
        queue="webhook",
        workers=webhook.maximum_concurrency,
        batch=webhook.batch_size,
        memory_mb=webhook.memory_mb,
        room=settings.retention.queue_days * DAY
        - webhook_rules(webhook, settings.lease_margin_seconds).longest_stay,
        kept_days=settings.retention.queue_days,
        keys=SettingKeys("webhook.maximum_concurrency", None, None),
    )
