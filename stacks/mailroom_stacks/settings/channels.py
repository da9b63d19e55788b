"""Settings of the section `channels` with lanes and rules, and of the section `mail`."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from email.utils import parseaddr
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from mailroom.budget import PerDay
from mailroom.channels.mail.contract import MAX_RECIPIENTS
from mailroom.message import address
from mailroom.providers import providers_of
from mailroom_stacks.paths import CHANNELS, LAMBDAS
from mailroom_stacks.settings.constants import (
    OF_FALLBACK,
)
from mailroom_stacks.settings.queues import (
    RESEND_DELAYS,
    QueueRules,
    Retention,
    Waits,
    queue_rules,
    stay_faults,
)
from mailroom_stacks.settings.sections import MEMORY_MB, HttpProvider, MailProvider, OnUnknown, Section, hours
from mailroom_stacks.settings.sentences import number
from mailroom_stacks.settings.times import WHOLE_VCPU_MB, Times

LaneName = Literal["normal", "bulk"]
MAX_TIMEOUT = 900
"""Longest time-out of a Lambda function, in seconds."""

_ANY_DATE = "0001-01-01"
DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
ADDRESS = re.compile(r"[\w!#$%&'*+/=?^`{|}~.-]+@([A-Za-z0-9-]+\.)+[A-Za-z0-9-]+", re.ASCII)


def _address(sender: str) -> str:
    """Validate a sender, such as `a@b.c` or `Name <a@b.c>`, and return it."""
    # If only the sender function found an invalid address, every mail would become a dead letter.
    if not ADDRESS.fullmatch(parseaddr(sender)[1]):
        raise ValueError("is not a mail address; write 'name@example.com' or 'Name <name@example.com>'")
    address.normalise(sender)  # raises ValueError for a name that is too long
    return sender


class Lane(Section):
    """Queue of a channel, with its share of the channel's rate."""

    maximum_concurrency: int = Field(default=2, ge=2, le=1000)
    """Maximum number of functions at a time. After a submit, each function waits for this number of seconds,
    divided by the lane's rate (`messages_per_second` x `share`)."""
    share: float = Field(ge=0.01, le=1)
    """Share of `messages_per_second` for this lane."""
    reserve: float = Field(default=0, ge=0, le=0.95)
    """Share of `per_day` that is reserved for messages of this lane. Only the reserve of the lane normal is
    used."""


PerDaySetting = Annotated[int, Field(ge=1)] | tuple[tuple[str, Annotated[int, Field(ge=1)]], ...] | None
Rate = Annotated[float, Field(ge=0.1, le=100_000)]


class Fallback(Section):
    """Limits of a channel's second provider, which `mail.fallback` or `sms.fallback` names, and the time from
    which it gets messages. Each lane gets a second queue, with a sender for this provider."""

    messages_per_second: Rate = 1
    """Messages per second that the second provider allows, over all lanes."""
    per_day: PerDaySetting = None
    """Maximum number of recipients in 24 hours at the second provider, in the form of the channel's
    `per_day`."""
    after_tries: int = Field(default=3, ge=1, le=10)
    """Number of receives from the queue after which a message goes to the second provider, if the first has
    certainly not sent it: it throttled the request, paused the account, rejected the credentials, or could
    not be reached."""
    after_seconds: int = Field(default=60, ge=1, le=3600)
    """Seconds from the first receive after which a message goes to the second provider even before
    `after_tries` receives, if the first provider has certainly not sent it."""
    when_day_used_up: bool = False
    """Whether a message goes to the second provider at once if the first responds that its daily quota is
    used up. If false, the message waits for the quota."""


class Channel(HttpProvider):
    """Settings of a channel. Each of its lanes gets a queue, a dead-letter queue and a sender function."""

    handler: str = Field(pattern=r"^[a-z][a-z0-9_]{0,31}$")
    """Name, without .py, of a file in lambdas/ or channels/. Lambda runs its `handler`."""
    module: str | None = Field(default=None, pattern=r"^channels(\.[a-z][a-z0-9_]*)+$")
    """Module whose `CHANNEL` describes a channel of your own, such as channels.telegram."""
    lanes: dict[LaneName, Lane] = Field(min_length=1)
    """Lanes of the channel: normal, and bulk if campaigns must not delay other messages."""
    messages_per_second: Rate = 1
    """Messages per second that the provider allows, over all lanes."""
    per_day: PerDaySetting = None
    """Maximum number of recipients of this stage in 24 hours; null means no limit. To warm up an address or a
    domain, use limits by date: [["2026-12-01", 500], ["2026-12-02", 1000]]."""
    window: Annotated[dict[str, str], AfterValidator(hours)] | None = None
    """Hours in which bulk messages may be sent, such as {"from": "09:00", "to": "20:00", "days": "mon-sat",
    "zone": "Europe/Berlin"}. The window of a message overrides them."""
    longest_throttling_seconds: int = Field(default=14_400, ge=0, le=172_800)
    """Seconds for which the provider may throttle requests before messages become dead letters."""
    timeout_seconds: int | None = Field(default=None, ge=13, le=MAX_TIMEOUT)
    """Time-out of the sender functions. After a crash, a message waits six times as long. null: 25 s for the
    lane normal and 60 s for bulk, or longer if the slowest message needs it. Before you lower it, pause the
    lanes until running invocations have ended: they could run for longer than the lease of a claim, which
    becomes shorter too."""
    memory_mb: int = Field(default=MEMORY_MB, ge=128, le=10_240)
    """Memory of a sender function, in MiB. It gets more if large attachments or several messages at a time
    need more."""
    submit_seconds: int = Field(default=10, ge=1, le=300)
    """Longest time of one submit to the provider, including HTTP time-outs."""
    submits_at_once: int = Field(default=1, ge=1, le=10)
    """Number of messages of a batch that one function delivers at a time. After a crash, the outcomes of all
    of them are unknown."""
    on_unknown: OnUnknown = "resend"
    """Action after a crash that leaves no evidence of whether a message was sent: resend sends it again (at
    least once), hold fails it as unknown (at most once)."""
    secret: str | None = Field(default=None, min_length=1)
    """Description of the secret mailroom-{stage}-{event_type}, which tells operators what content to put into
    it and in which format. null creates no secret."""
    suppressible: bool = False
    """Whether the sender reads the suppression list and preferences, and suppresses recipients whom the
    provider reports as gone."""
    fallback: Fallback = Fallback()
    """Limits of the second provider, if `mail.fallback` or `sms.fallback` names one."""

    @property
    def days(self) -> PerDay:
        """`per_day` in the form that functions read: see `days_of`."""
        return days_of(self.per_day)


def days_of(per_day: PerDaySetting) -> PerDay:
    """Return a daily limit in the form that functions read: the limits by their first date. Empty means no
    limit."""
    if per_day is None:
        return ()
    return ((_ANY_DATE, per_day),) if isinstance(per_day, int) else per_day


class Mail(Section):
    """Settings of mail, besides those in `channels.mail`."""

    provider: MailProvider = "ses"
    """Amazon SES, or Resend (resend.com): `mailroom docs choose-a-provider`."""
    fallback: MailProvider | None = None
    """Second provider, which sends the mails that the first has certainly not sent: `mailroom docs
    two-providers`. Its limits are in `channels.mail.fallback`."""
    senders: tuple[Annotated[str, AfterValidator(_address)], ...] = Field(min_length=1)
    """Sender addresses that a message may have in `from`; the first is the default."""
    max_attachment_bytes: int = Field(default=7_000_000, ge=1, le=28_000_000)
    """Maximum size of all attachments of a mail together, in bytes before base64 adds a third. SES accepts 40
    MB with base64, and throttles mails above 10 MB."""


@dataclass(frozen=True)
class LaneRow:
    """Lane of a channel, with its names, settings and derived numbers."""

    event_type: str
    lane: LaneName
    channel: Channel
    polling: Lane
    rules: QueueRules
    batch_size: int
    """Maximum number of messages in one invocation."""
    timeout_seconds: int
    """Time-out of the sender function."""
    memory_mb: int
    """Memory of the sender function, in MiB."""
    fallback: str = ""
    """Name of the second provider, if the row is for the lane's queue at that provider; otherwise empty."""

    @property
    def queue(self) -> str:
        """Short name of the queue: mail, mail-bulk, mail-bulk-fallback."""
        return self._named(self.event_type)

    @property
    def function(self) -> str:
        """Short name of the function: send-mail, send-mail-bulk, send-mail-bulk-fallback."""
        return self._named(self.channel.handler.replace("_", "-"))

    @property
    def budget(self) -> str:
        """Name of the daily budget: mail, mail-fallback."""
        return f"{self.event_type}{OF_FALLBACK}" if self.fallback else self.event_type

    @property
    def pace(self) -> float:
        """Seconds for which each worker waits after a submit, so that all workers together do not exceed the
        lane's rate."""
        return _gap(self.channel, self.polling)

    def _named(self, base: str) -> str:
        lane = base if self.lane == "normal" else f"{base}-{self.lane}"
        return f"{lane}{OF_FALLBACK}" if self.fallback else lane


def lane_rows(
    channels: Mapping[str, Channel], mail: Mail, times: Times, fallbacks: Mapping[str, str]
) -> Iterator[LaneRow]:
    """Yield a row for each lane of each channel, and a further row for each lane of a channel in `fallbacks`,
    which has the names of second providers by channel."""
    for event_type, channel in channels.items():
        memory_mb = max(channel.memory_mb, least_memory(event_type, channel, mail))
        alone = _alone(channel, memory_mb, times)
        for lane, polling in channel.lanes.items():
            gap = _gap(channel, polling)
            usual = times.urgent_timeout if lane == "normal" else times.bulk_timeout
            default = min(MAX_TIMEOUT, max(usual, math.floor(alone + gap) + 1))
            timeout = channel.timeout_seconds or default
            batch_size = min(MOST_TOGETHER, math.ceil((timeout - alone) / gap - 1e-9) - 1)
            rules = _rules(channel, timeout, times)
            yield LaneRow(event_type, lane, channel, polling, rules, batch_size, timeout, memory_mb)
        if event_type in fallbacks:
            limits = {name: getattr(channel.fallback, name) for name in ("messages_per_second", "per_day")}
            second = {event_type: channel.model_copy(update=limits)}
            for row in lane_rows(second, mail, times, {}):
                yield replace(row, fallback=fallbacks[event_type])


MOST_TOGETHER = 10
"""Maximum number of messages in one invocation. It is lower if the wait after each message is long."""


def _gap(channel: Channel, polling: Lane) -> float:
    return polling.maximum_concurrency / (channel.messages_per_second * polling.share)


def _alone(channel: Channel, memory_mb: int, times: Times) -> float:
    """Return the seconds that the slowest message needs: its preparation, its submit, and the recording of
    its outcome. If the rest of an invocation were shorter, the message would go back to the queue each time,
    and in the end become a dead letter. Messages that are prepared at the same time share the processor."""
    preparation = channel.submits_at_once * times.preparation / min(1, memory_mb / WHOLE_VCPU_MB)
    return preparation + channel.submit_seconds + times.record


def _rules(channel: Channel, timeout: int, times: Times) -> QueueRules:
    rules = queue_rules(
        times,
        timeout,
        throttling=channel.longest_throttling_seconds,
        batch_size=MOST_TOGETHER,
        waits=Waits.of(times),
    )
    # After a submit with an unknown outcome, a message may wait for a resend instead of the usual retry.
    return replace(rules, longest_stay=rules.longest_stay + sum(RESEND_DELAYS))


OWN_SECTIONS = ("fax", "webhook")
"""Event types that have their own stack and section of settings, instead of an entry in `channels`."""
QUEUES = {"fax", "fax-retry", "webhook", "feedback", "collect", "audience"}
FUNCTIONS = {
    *("dispatch", "release", "outcomes", "index-messages", "send-fax", "retry-fax"),
    *("send-webhook", "feedback", "twilio-callbacks", "dead-letters", "collect", "compose"),
    *("messages-api", "unsubscribe", "resend-mail-events"),
}
WITH_OWN_NEEDS = ("mail", "sms", "push")
"""Channels whose senders get the permissions and variables of NEEDS in mailroom_stacks/channels.py. The
senders of other channels get those that their settings require."""
SECRETS = {
    *(*WITH_OWN_NEEDS, "unsubscribe"),
    *(name for kind in ("mail", "sms") for name, row in providers_of(kind).items() if row.credentials),
}
"""Channels whose settings may not have a `secret`. Other stacks create secrets with some of these names, and
the senders of mail, sms and push do not read a secret of their channel."""

SENDER_MB = 220
"""Memory of a sender function, in MiB: 60 for the function itself, and the rest for the largest payload that
it reads. That is 10 MiB of text at four bytes per character and 150,000 values, encoded once more to measure
its size."""
ITEM_MB = 32
"""Memory, in MiB, of a message whose content is in its mailbox item; each thread needs as much. A rendering
takes up to 31 MiB if its output is refused for its size, and the request of a mail with the largest HTML and
text takes 27 MiB."""
ATTACHED = 5
"""Bytes of memory for each byte of an attachment, which is in memory as the original, as base64, in the
request and in the bytes of the request."""


def channels_faults(
    channels: Mapping[str, Channel],
    mail: Mail,
    times: Times,
    keep: Retention,
    fallbacks: Mapping[str, str],
) -> Iterator[str]:
    """Yield violations of the rules of the section `channels`. `fallbacks` has the names of second providers
    by channel."""
    rows = [*lane_rows(channels, mail, times, fallbacks)]
    for event_type, channel in channels.items():
        if event_type in OWN_SECTIONS:
            yield f"channels.{event_type}: is not allowed in channels; use the section {event_type!r}."
        yield from _channel(f"channels.{event_type}", channel)
        yield from _day(f"channels.{event_type}", channel, channel.days)
        if event_type in fallbacks:
            yield from _day(f"channels.{event_type}.fallback", channel, days_of(channel.fallback.per_day))
        if channel.window is not None and "zone" not in channel.window:
            yield f"channels.{event_type}.window.zone: is missing; add a time zone such as Europe/Berlin."
        if channel.secret is not None and event_type in SECRETS:
            yield (
                f"channels.{event_type}.secret: the name {event_type!r} is reserved for Mailroom; remove "
                "the secret, or rename the channel."
            )
    yield from _names(rows)
    for row in rows:
        key = f"channels.{row.event_type}"
        limits = f"{key}.fallback.messages_per_second" if row.fallback else f"{key}.messages_per_second"
        yield from _pace(f"{key}.lanes.{row.lane}", row, times, limits)
        yield from stay_faults(f"{key}.longest_throttling_seconds", row.rules, keep)
    if mail.fallback == mail.provider:
        yield f"mail.fallback: {mail.fallback!r} is mail.provider already; use the other provider, or null."


def _channel(key: str, channel: Channel) -> Iterator[str]:
    if not any((folder / f"{channel.handler}.py").exists() for folder in (CHANNELS, LAMBDAS)):
        yield (
            f"{key}.handler: {channel.handler!r} is not a handler of Mailroom, and there is no file "
            f"channels/{channel.handler}.py; add it, or use another handler."
        )
    if "normal" not in channel.lanes:
        yield f"{key}.lanes.normal: is missing; add it for messages without `lane`."
    total = sum(lane.share for lane in channel.lanes.values())
    if total > 1 + 1e-9:
        shares = " + ".join(f"{name} {number(lane.share)}" for name, lane in channel.lanes.items())
        yield f"{key}.lanes: the shares {shares} = {number(total)} exceed 1; lower them to 1 in total."


def _day(key: str, channel: Channel, days: PerDay) -> Iterator[str]:
    """Yield violations of the rules of `per_day`, the daily limit of a channel at one provider."""
    dates = [date for date, _ in days]
    if any(not DATE.fullmatch(date) for date in dates) or dates != sorted({*dates}):
        yield f'{key}.per_day: must have each date once, in ascending order and in the form "2026-12-01".'
    reserve = channel.lanes["normal"].reserve if "normal" in channel.lanes else 0
    for _, recipients in days if "bulk" in channel.lanes else ():
        if not reserve:
            yield (
                f"{key.removesuffix('.fallback')}.lanes.normal.reserve: is missing; without it, a campaign "
                "can use up per_day. Use 0.1, or the share that urgent messages such as codes need."
            )
            return
        if (for_bulk := recipients - math.ceil(recipients * reserve)) < MAX_RECIPIENTS:
            yield (
                f"{key}.per_day: {recipients} with a reserve of {number(reserve)} leaves {for_bulk} for "
                f"bulk, but a message may have {MAX_RECIPIENTS} recipients; use "
                f"{math.ceil((MAX_RECIPIENTS + 1) / (1 - reserve))} or more, or a smaller reserve."
            )
            return


def least_memory(event_type: str, channel: Channel, mail: Mail) -> int:
    """Return the memory in MiB that a sender function needs for the largest message and for the other
    messages that it delivers at the same time.

    Only one message at a time has objects in the payload bucket. The payload of a message with a template is
    at most 128 KB, so a rendering never needs memory in addition to the largest payload. A rendering also
    ends before attachments are read.
    """
    attached = mail.max_attachment_bytes if event_type == "mail" else 0
    beside = channel.submits_at_once - 1
    return SENDER_MB + math.ceil(ATTACHED * attached / 2**20) + ITEM_MB * beside


def _names(rows: Sequence[LaneRow]) -> Iterator[str]:
    names = {"queue": set(QUEUES), "function": set(FUNCTIONS)}
    for row in rows:
        for kind, name in (("queue", row.queue), ("function", row.function)):
            if name in names[kind]:
                yield f"channels.{row.event_type}: {kind} {name!r} exists; rename the channel or handler."
            names[kind].add(name)


def _pace(key: str, row: LaneRow, times: Times, rate: str) -> Iterator[str]:
    if row.batch_size < 1:
        needed = _alone(row.channel, row.memory_mb, times) + row.pace
        is_default = row.channel.timeout_seconds is None
        limit = f"Lambda allows {MAX_TIMEOUT}" if is_default else f"timeout_seconds is {row.timeout_seconds}"
        yield (
            f"{key}.maximum_concurrency: with {row.polling.maximum_concurrency} workers, each waits "
            f"{number(row.pace)} s between submits; with this wait, the slowest message needs a time-out of "
            f"over {math.floor(needed)} s, but {limit}; lower it, or raise "
            f"{'' if is_default else 'timeout_seconds or '}{rate}."
        )
