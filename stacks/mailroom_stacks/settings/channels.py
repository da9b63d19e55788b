"""Channels of the setting `channels` with their lanes and rules; and mail."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from email.utils import parseaddr
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from mailroom.budget import PerDay
from mailroom.channels.mail.contract import MAX_RECIPIENTS
from mailroom_stacks.paths import CHANNELS, LAMBDAS
from mailroom_stacks.settings.queues import (
    RESEND_DELAYS,
    QueueRules,
    Retention,
    Waits,
    queue_rules,
    stay_faults,
)
from mailroom_stacks.settings.sections import MEMORY_MB, HttpProvider, OnUnknown, Section, hours
from mailroom_stacks.settings.sentences import number
from mailroom_stacks.settings.times import Times

LaneName = Literal["normal", "bulk"]

_ANY_DATE = "0001-01-01"
DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
ADDRESS = re.compile(r"[\w!#$%&'*+/=?^`{|}~.-]+@([A-Za-z0-9-]+\.)+[A-Za-z0-9-]+", re.ASCII)


def _address(sender: str) -> str:
    """Validate a sender, such as `a@b.c` or `Name <a@b.c>`."""
    # If the sender refused this address later, every mail would become a dead letter.
    if not ADDRESS.fullmatch(parseaddr(sender)[1]):
        raise ValueError("is not a mail address; write 'name@example.com' or 'Name <name@example.com>'")
    return sender


class Lane(Section):
    """Queue of a channel, with its share of the channel's rate."""

    maximum_concurrency: int = Field(default=2, ge=2, le=1000)
    """Functions at once; each waits concurrency / rate after a submit."""
    share: float = Field(ge=0.01, le=1)
    """Share of `messages_per_second` for this lane."""
    reserve: float = Field(default=0, ge=0, le=0.95)
    """Share of `per_day` that bulk leaves to this lane; only lane normal has one."""


class Channel(HttpProvider):
    """Row of the channels: the properties of queue, dead-letter queue and sender for each lane of an event
    type."""

    handler: str = Field(pattern=r"^[a-z][a-z0-9_]{0,31}$")
    """File in lambdas/ or channels/, without its ending, whose `handler` runs."""
    module: str | None = Field(default=None, pattern=r"^channels(\.[a-z][a-z0-9_]*)+$")
    """Module whose `CHANNEL` describes a channel of your own, such as channels.telegram."""
    lanes: dict[LaneName, Lane] = Field(min_length=1)
    """normal, and bulk if campaigns must not delay the other messages."""
    messages_per_second: float = Field(default=1, ge=0.1, le=100_000)
    """Rate that the provider allows, over all lanes."""
    per_day: Annotated[int, Field(ge=1)] | tuple[tuple[str, Annotated[int, Field(ge=1)]], ...] | None = None
    """Recipients that this stage may reach in 24 hours; null means no limit. By date while an address or a
    domain is warmed up: [["2026-12-01", 500], ["2026-12-02", 1000]]."""
    window: Annotated[dict[str, str], AfterValidator(hours)] | None = None
    """Hours in which bulk may go out, such as {"from": "09:00", "to": "20:00", "days": "mon-sat", "zone":
    "Europe/Berlin"}. A message's own window overrides them."""
    longest_throttling_seconds: int = Field(default=14_400, ge=0, le=172_800)
    """Longest time for which a provider may refuse before messages become dead letters."""
    timeout_seconds: int = Field(default=60, ge=13, le=900)
    """Longest time of an invocation. The visibility time-out is six times as long. Before you lower it, pause
    the lanes until running invocations have ended, which could outlive the new, shorter lease."""
    memory_mb: int = Field(default=MEMORY_MB, ge=128, le=10_240)
    """Memory of a sender, in MiB. A sender gets more if large attachments or several messages at once need
    more."""
    submit_seconds: int = Field(default=10, ge=1, le=300)
    """Longest time of one submit, HTTP time-outs included."""
    submits_at_once: int = Field(default=1, ge=1, le=10)
    """Messages of a batch that one function delivers at a time. After a crash the outcomes of all of these
    are unknown."""
    on_unknown: OnUnknown = "resend"
    """Consequence of a crash without evidence: send again (at least once) or fail as unknown (at most
    once)."""
    secret: str | None = Field(default=None, min_length=1)
    """Description of the secret mailroom-{stage}-{event_type}: its content and form, for the people who put
    it. null makes no secret."""
    suppressible: bool = False
    """Whether the sender reads the suppression list and preferences, and marks recipients who are gone."""

    @property
    def days(self) -> PerDay:
        """`per_day` in the form of the functions; empty means no limit."""
        if self.per_day is None:
            return ()
        return ((_ANY_DATE, self.per_day),) if isinstance(self.per_day, int) else self.per_day


RESEND_URL = "https://api.resend.com"


class Mail(Section):
    """Settings of mail beside its row."""

    provider: Literal["ses", "resend"] = "ses"
    """Amazon SES, or Resend (resend.com): `mailroom docs choose-a-provider`."""
    senders: tuple[Annotated[str, AfterValidator(_address)], ...] = Field(min_length=1)
    """Addresses that a message's `from` may name; the first is the default."""
    max_attachment_bytes: int = Field(default=7_000_000, ge=1, le=28_000_000)
    """Bytes of all attachments of a mail together. SES takes 40 MB with base64's third on top, and throttles
    above 10 MB."""


@dataclass(frozen=True)
class LaneRow:
    """Lane of a channel with its names, its settings and the numbers derived from them."""

    event_type: str
    lane: LaneName
    channel: Channel
    polling: Lane
    rules: QueueRules
    batch_size: int
    """Messages of one invocation."""
    memory_mb: int
    """Memory of the sender, in MiB."""

    @property
    def queue(self) -> str:
        """Short name of the queue: mail, mail-bulk."""
        return self._named(self.event_type)

    @property
    def function(self) -> str:
        """Short name of the function: send-mail, send-mail-bulk."""
        return self._named(self.channel.handler.replace("_", "-"))

    @property
    def pace(self) -> float:
        """Wait after each submit: if each worker waits so long, all together keep to the lane's rate."""
        return _gap(self.channel, self.polling)

    def _named(self, base: str) -> str:
        return base if self.lane == "normal" else f"{base}-{self.lane}"


def lane_rows(channels: Mapping[str, Channel], mail: Mail, times: Times) -> Iterator[LaneRow]:
    """Yield every lane of every channel."""
    for event_type, channel in channels.items():
        rules = queue_rules(
            times,
            channel.timeout_seconds,
            throttling=channel.longest_throttling_seconds,
            batch_size=MOST_TOGETHER,
            waits=Waits.of(times),
        )
        # After an uncertain submit, a message may wait for a resend instead of the usual retry.
        rules = replace(rules, longest_stay=rules.longest_stay + sum(RESEND_DELAYS))
        memory_mb = max(channel.memory_mb, least_memory(event_type, channel, mail))
        for lane, polling in channel.lanes.items():
            batch_size = min(MOST_TOGETHER, _fitting(channel, polling, times))
            yield LaneRow(event_type, lane, channel, polling, rules, batch_size, memory_mb)


MOST_TOGETHER = 10
"""Messages of one invocation; fewer if each must wait long for its turn."""


def _gap(channel: Channel, polling: Lane) -> float:
    return polling.maximum_concurrency / (channel.messages_per_second * polling.share)


def _fitting(channel: Channel, polling: Lane, times: Times) -> int:
    """Return the number of messages for which an invocation has time, each followed by its wait: a last
    submit and its record must end within the time-out as well."""
    seconds = channel.timeout_seconds - channel.submit_seconds - times.record
    return math.ceil(seconds / _gap(channel, polling) - 1e-9) - 1


OWN_SECTIONS = ("fax", "webhook")
"""Event types with a stack and a section of their own, instead of a row."""
QUEUES = {"fax", "fax-retry", "webhook", "feedback", "collect", "audience"}
FUNCTIONS = {
    *("dispatch", "release", "outcomes", "index-messages", "send-fax", "retry-fax"),
    *("send-webhook", "feedback", "twilio-callbacks", "dead-letters", "collect", "compose"),
    *("messages-api", "unsubscribe", "resend-events"),
}
WITH_OWN_NEEDS = ("mail", "sms", "push")
"""Rows whose sender has special needs: NEEDS in mailroom_stacks/channels.py. Other rows name the needs of
theirs."""
SECRETS = {*WITH_OWN_NEEDS, "twilio", "unsubscribe", "resend"}
"""Rows that may name no secret: other stacks make some of these names, and senders of Mailroom's own rows
read no secret of their row."""

SENDER_MB = 220
"""Memory of a sender, in MiB: 60 for itself, and the rest for the largest payload that it reads, 10 MiB of
text at four bytes a character and 150,000 values, which is then encoded to be measured."""
ITEM_MB = 32
"""Memory, in MiB, of a message whose content is in its item; each thread has one. A rendering takes up to 31
if its output is refused for its size, and the request of a mail with the largest HTML and text 27."""
ATTACHED = 5
"""Bytes of memory for each byte of an attachment: the original, base64, the request and its bytes."""


def channels_faults(
    channels: Mapping[str, Channel], mail: Mail, times: Times, keep: Retention
) -> Iterator[str]:
    """Yield violations of the rules of the section `channels`."""
    rows = [*lane_rows(channels, mail, times)]
    for event_type, channel in channels.items():
        if event_type in OWN_SECTIONS:
            yield f"channels.{event_type}: is not a row of channels; set it in the section {event_type!r}."
        yield from _channel(f"channels.{event_type}", channel)
        yield from _day(f"channels.{event_type}", channel)
        if channel.window is not None and "zone" not in channel.window:
            yield f"channels.{event_type}.window.zone: is missing; name a time zone like Europe/Berlin."
        if channel.secret is not None and event_type in SECRETS:
            yield (
                f"channels.{event_type}.secret: {event_type!r} is a name of Mailroom's own; remove the "
                "secret, or give the channel another name."
            )
    yield from _names(rows)
    for row in rows:
        key = f"channels.{row.event_type}"
        yield from stay_faults(f"{key}.longest_throttling_seconds", row.rules, keep)
        yield from _pace(f"{key}.lanes.{row.lane}", row, times)


def _channel(key: str, channel: Channel) -> Iterator[str]:
    if not any((folder / f"{channel.handler}.py").exists() for folder in (CHANNELS, LAMBDAS)):
        yield (
            f"{key}.handler: {channel.handler!r} is none of Mailroom's and has no file "
            f"channels/{channel.handler}.py; add it, or name another."
        )
    if "normal" not in channel.lanes:
        yield f"{key}.lanes.normal: is missing; a message without a lane goes there."
    total = sum(lane.share for lane in channel.lanes.values())
    if total > 1 + 1e-9:
        shares = " + ".join(f"{name} {number(lane.share)}" for name, lane in channel.lanes.items())
        yield f"{key}.lanes: the shares {shares} = {number(total)} are over 1; lower them to 1 in all."


def _day(key: str, channel: Channel) -> Iterator[str]:
    """Yield violations of the rules of the day's budget."""
    dates = [date for date, _ in channel.days]
    if any(not DATE.fullmatch(date) for date in dates) or dates != sorted({*dates}):
        yield f'{key}.per_day: has to be in the order of its dates, each like "2026-12-01" and there once.'
    reserve = channel.lanes["normal"].reserve if "normal" in channel.lanes else 0
    for _, recipients in channel.days if "bulk" in channel.lanes else ():
        if not reserve:
            yield (
                f"{key}.lanes.normal.reserve: is missing; without one a campaign uses up all of per_day. Use "
                "0.1, or as much as codes and receipts need."
            )
            return
        if (for_bulk := recipients - math.ceil(recipients * reserve)) < MAX_RECIPIENTS:
            yield (
                f"{key}.per_day: {recipients} with a reserve of {number(reserve)} leaves bulk {for_bulk}, "
                f"and a message may have {MAX_RECIPIENTS} recipients; use "
                f"{math.ceil((MAX_RECIPIENTS + 1) / (1 - reserve))} or more, or a smaller reserve."
            )
            return


def least_memory(event_type: str, channel: Channel, mail: Mail) -> int:
    """Return the memory that a sender needs, in MiB, for the largest message and for those beside it.

    One message at a time has objects in the payload bucket. A payload of a message with a template is at most
    128 KB, so a rendering is never on top of the largest payload, and it ends before attachments are read.
    """
    attached = mail.max_attachment_bytes if event_type == "mail" else 0
    beside = channel.submits_at_once - 1
    return SENDER_MB + math.ceil(ATTACHED * attached / 2**20) + ITEM_MB * beside


def _names(rows: Sequence[LaneRow]) -> Iterator[str]:
    names = {"queue": set(QUEUES), "function": set(FUNCTIONS)}
    for row in rows:
        for kind, name in (("queue", row.queue), ("function", row.function)):
            if name in names[kind]:
                yield f"channels.{row.event_type}: its {kind} {name!r} exists already; give it another name."
            names[kind].add(name)


def _pace(key: str, row: LaneRow, times: Times) -> Iterator[str]:
    if row.batch_size < 1:
        yield (
            f"{key}.maximum_concurrency: {row.polling.maximum_concurrency} workers leave "
            f"{number(row.pace)} s between submits; with submit_seconds {row.channel.submit_seconds} and "
            f"{times.record} to record that must be under timeout_seconds {row.channel.timeout_seconds}; "
            "lower it, or raise timeout_seconds."
        )
