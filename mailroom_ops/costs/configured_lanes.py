"""A stage's lanes, with the numbers from its settings in cdk.json, and their speeds.

A worker is an instance of a sender function that processes one batch after another. It submits each message,
records the outcome, and waits after each submit, so that all workers together keep to the rate (see
`mailroom.delivery.worker`).

The speed of a lane is the lower of its rate and of the number of its workers divided by the time of a
message. An invocation takes the sum of the times of its messages, and some time passes before the next
invocation. The formula is from the article "How We Send Mass Personalised Emails using AWS Serverless
Technologies" (Hashnode, 2022). It assumes that every message is sent at its first attempt, and that all
workers run from the start.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mailroom.budget import PerDay
from mailroom.channels.channel import Estimate, Provider
from mailroom.channels.contracts import CHANNELS
from mailroom.providers.registry import PROVIDERS
from mailroom_stacks.paths import CDK_JSON
from mailroom_stacks.settings.channels import LaneRow
from mailroom_stacks.settings.fax import Fax, fax_rules
from mailroom_stacks.settings.load import load
from mailroom_stacks.settings.queues import DAY
from mailroom_stacks.settings.sections import MEMORY_MB
from mailroom_stacks.settings.sentences import SettingsError
from mailroom_stacks.settings.settings import Settings
from mailroom_stacks.settings.times import WHOLE_VCPU_MB
from mailroom_stacks.settings.webhook import webhook_rules

BETWEEN_SECONDS = 0.1
"""Seconds from the end of a worker's invocation to its next invocation, assumed."""


@dataclass(frozen=True, kw_only=True)
class ConfiguredLane:
    """Lane of a channel, with its settings."""

    channel: str
    queue: str
    workers: int
    """Maximum number of workers that run at the same time."""
    workers_setting: str
    """Path of the setting of `workers`, below the stage."""
    batch: int
    """Maximum number of messages in one invocation."""
    rate: float | None = None
    """Messages a second of all workers together; None if they are unlimited."""
    rate_setting: str = ""
    """Path of the setting of `rate`, below the stage."""
    memory_mb: int
    longest_wait: int
    """Seconds for which a message may wait in its queue, so that the rest of the retention suffices for all
    retries."""
    estimate: Estimate
    """Time that one message takes, and its events."""
    provider: str = ""
    """Name of the channel's provider in the ledger; empty if it is unknown."""
    fifo: bool = False
    at_once: int = 1
    """Number of messages that a worker delivers in parallel."""
    is_fallback: bool = False
    """Whether the lane belongs to the channel's second provider."""
    per_day: PerDay = ()
    """Daily limits of recipients at the lane's provider, by the first date of each. Empty for lanes
    other than bulk, because only bulk messages wait for them."""
    reserve: float = 0
    """Share of `per_day` that bulk messages leave for the lane normal, such as for codes."""

    @property
    def descriptor(self) -> Provider:
        """Descriptor of the provider."""
        return _own(self.channel).get(self.provider) or PROVIDERS.get(self.provider) or Provider(title="")

    @property
    def pace(self) -> float:
        """Seconds between two submits of one worker."""
        return self.workers / self.rate if self.rate else 0

    @property
    def seconds(self) -> float:
        """Seconds that a message takes in its sender. Computing takes longer with less than a vCPU, and
        messages that are delivered in parallel share the vCPU."""
        # A worker uses at most one vCPU, because Python does.
        slowed = self.estimate.computing / min(1, self.memory_mb / WHOLE_VCPU_MB)
        return max(self.estimate.latency - self.estimate.computing + slowed, self.at_once * slowed)

    @property
    def working(self) -> float:
        """Seconds that a worker works for each message."""
        return math.ceil(self.batch / self.at_once) * self.seconds / self.batch

    @property
    def waiting(self) -> float:
        """Seconds that a worker waits for each message, so that the lane keeps to its rate."""
        return max(0.0, self.pace - self.working)

    @property
    def speeds(self) -> dict[str, float]:
        """Messages a second that the workers can send, and that the rate allows, by the path of the
        setting."""
        of_workers = self.workers / (self.working + BETWEEN_SECONDS / self.batch)
        of_rate = {self.rate_setting: self.rate} if self.rate else {}
        return {self.workers_setting: of_workers, **of_rate}

    @property
    def speed(self) -> float:
        """Messages a second."""
        return min(self.speeds.values())


def read_settings(stage: str) -> Settings:
    """Read a stage's settings from cdk.json. Raises SettingsError."""
    context = json.loads(CDK_JSON.read_text())["context"]
    return load(context["mailroom"], stage)


def lanes_of(settings: Settings) -> list[ConfiguredLane]:
    """Return all lanes of a stage."""
    lanes = [_channel_lane(settings, row) for row in settings.lane_rows()]
    if settings.fax:
        lanes.append(_fax_lane(settings, settings.fax))
    return [*lanes, _webhook_lane(settings)]


def lane_of(settings: Settings, queue: str) -> ConfiguredLane:
    """Return the lane of a queue. Raises SettingsError, which lists the queues of all lanes, if the stage
    does not have the queue."""
    lanes = {lane.queue: lane for lane in lanes_of(settings)}
    if queue not in lanes:
        raise SettingsError(f"queue: {queue!r} is not in {settings.stage}; use one of {', '.join(lanes)}.")
    return lanes[queue]


def _own(channel: str) -> Mapping[str, Provider]:
    """Return the providers of an own channel, by name."""
    return CHANNELS[channel].providers if channel in CHANNELS else {}


def _by(settings: Settings, channel: str, name: str = "") -> dict[str, Any]:
    """Return the fields about the provider `name` of a channel, or about its first provider."""
    names = (name for name, row in PROVIDERS.items() if row.channel == channel)
    name = name or next(iter((*settings.providers(channel), *_own(channel), *names)), "")
    estimate = CHANNELS[channel].estimate if channel in CHANNELS else Estimate()
    return {"provider": name, "estimate": estimate}


def _channel_lane(settings: Settings, row: LaneRow) -> ConfiguredLane:
    channel = f"channels.{row.event_type}"
    return ConfiguredLane(
        channel=row.event_type,
        queue=row.queue,
        workers=row.polling.maximum_concurrency,
        workers_setting=f"{channel}.lanes.{row.lane}.maximum_concurrency",
        batch=row.batch_size,
        rate=row.channel.messages_per_second * row.polling.share,
        rate_setting=f"{channel}{'.fallback' if row.fallback else ''}.messages_per_second",
        memory_mb=row.memory_mb,
        longest_wait=settings.retention.queue_days * DAY - row.rules.longest_stay,
        at_once=row.channel.submits_at_once,
        is_fallback=bool(row.fallback),
        per_day=row.channel.days if row.lane == "bulk" else (),
        reserve=row.channel.lanes["normal"].reserve,
        **_by(settings, row.event_type, row.fallback),
    )


def _fax_lane(settings: Settings, fax: Fax) -> ConfiguredLane:
    rules = fax_rules(settings.times)
    return ConfiguredLane(
        channel="fax",
        queue="fax",
        workers=fax.concurrent_calls,
        workers_setting="fax.concurrent_calls",
        batch=1,
        rate=fax.calls_per_second,
        rate_setting="fax.calls_per_second",
        memory_mb=MEMORY_MB,
        longest_wait=settings.retention.days_of(fifo=True) * DAY - rules.longest_stay,
        **_by(settings, "fax"),
        fifo=True,
    )


def _webhook_lane(settings: Settings) -> ConfiguredLane:
    webhook = settings.webhook
    rules = webhook_rules(webhook, settings.times)
    return ConfiguredLane(
        channel="webhook",
        queue="webhook",
        workers=webhook.maximum_concurrency,
        workers_setting="webhook.maximum_concurrency",
        batch=1,
        memory_mb=MEMORY_MB,
        longest_wait=settings.retention.queue_days * DAY - rules.longest_stay,
        **_by(settings, "webhook"),
    )
