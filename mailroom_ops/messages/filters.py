"""Filter options that several commands have, and checks of the names in them: without a check, a misspelt
name would give an empty list, as if there were no such messages."""

from collections.abc import Sequence
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct

from mailroom.campaigns.runs import Run, Runs
from mailroom.channels.contracts import CONTRACTS
from mailroom.clock import epoch, iso, milliseconds
from mailroom.ledger.items import DEAD_LETTER
from mailroom.ledger.status_reader import MessageStatus
from mailroom.message.outcome import FAILED
from mailroom.search.finder import Filter
from mailroom_ops.messages.failed_messages import failure_of
from mailroom_ops.shared.deployed_stage import name as stage_name
from mailroom_ops.shared.refusals import Refused
from mailroom_ops.shared.times import span_of
from mailroom_stacks.paths import CAMPAIGN_FILE, CAMPAIGNS

if TYPE_CHECKING:
    import boto3
    from types_boto3_dynamodb import DynamoDBClient

NOT_SENT = "not-sent"
"""Name in place of a status: the recipient did not get the message, or not yet."""
FAILURE = "failure"
"""Name in place of the statuses FAILED."""
GOT = ("sent", "delivered", "complained")
"""Statuses of messages that are not NOT_SENT."""


class MessageFilter(Filter, frozen=True):
    """Filter of a list of messages, whose status may also be DEAD_LETTER, FAILURE or NOT_SENT."""

    reason: str = ""
    domain: str = ""
    statuses: ClassVar[tuple[str, ...]] = (*Filter.statuses, DEAD_LETTER, FAILURE, NOT_SENT)

    @property
    def failing(self) -> Sequence[str]:
        """Keys in the ledger's index of failures that the status means; empty for a status which is not in
        the index."""
        if self.status == FAILURE:
            return FAILED
        return [self.status] if self.status in (*FAILED, DEAD_LETTER) else []

    def stands(self, message: Any) -> bool:
        facts = {
            DEAD_LETTER: "dead_lettered_at" in message.times,
            FAILURE: message.status in FAILED,
            NOT_SENT: message.status not in GOT,
        }
        return facts.get(self.status, super().stands(message))

    def takes(self, message: MessageStatus) -> bool:
        if not super().takes(message):
            return False
        if not (self.reason or self.domain):
            return True
        failure = failure_of(message, full=True)
        return self.reason in ("", failure.reason) and self.domain.lower() in ("", failure.domain)

    def takes_named(self, message: MessageStatus) -> bool:
        """Return whether a message that was found by its id matches the filter, with the time of its put."""
        (first, last), put_at = self.span(""), message.times.get("putAt")
        place = f"{milliseconds(epoch(put_at)):013d}" if put_at else ""
        return self.takes(message) and (not (self.since or self.until) or first <= place < last)


def bounds(since: str, until: str, now_s: float) -> dict[str, str]:
    """Return the fields `since` and `until` of a filter. A text is a span such as `24h`, a date, an ISO 8601
    time, or empty; a date as `until` includes its day. Raises Refused for another text, for a future `since`,
    and for an `until` before it."""
    texts = {"since": since.strip(), "until": until.strip()}
    times = {name: _moment(text, now_s, name) for name, text in texts.items() if text}
    if times.get("since", 0) > now_s or times.get("since", 0) >= times.get("until", inf):
        raise Refused(f"--since {since} is in the future, or after --until; use an earlier time.")
    return {name: f"{milliseconds(seconds):013d}" for name, seconds in times.items()}


class Period(Struct, frozen=True):
    """Period of a list, in epoch milliseconds: from `since`, to before `until`."""

    since: int = 0
    until: float = inf

    @classmethod
    def of(cls, since: str, until: str, now_s: float) -> "Period":
        """Parse the options --since and --until. Raises Refused like `bounds`."""
        return cls(**{name: int(text) for name, text in bounds(since, until, now_s).items()})

    def contains(self, at_ms: int) -> bool:
        """Return whether a time is in the period."""
        return self.since <= at_ms < self.until


ALWAYS = Period()


def _moment(text: str, now_s: float, option: str) -> float:
    if (ago := span_of(text)) is not None:
        return now_s - ago
    try:
        return epoch(text) + (86_400 if option == "until" and len(text) == len("2026-11-20") else 0)
    except ValueError:
        raise Refused(f"--{option} {text!r:.60} is not a time; use 24h, 2d, 90m or 2026-11-20.") from None


def check_names(session: "boto3.Session", stage: str, criteria: Filter, statuses: Sequence[str]) -> None:
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
    latest = [entry.run for entry in latest_runs(client, stage, name)]
    if latest and run and _runs(client, stage).read(name, run) is None:
        raise Refused(f"campaign: {name} has no run {run!r:.60} in {stage}; use {', '.join(latest)}.")
    campaigns = sorted(path.parent.name for path in CAMPAIGNS.glob(f"*/{CAMPAIGN_FILE}"))
    if not latest and (run or name not in campaigns):
        listing = ", ".join(campaigns) or "none"
        raise Refused(f"campaign: {campaign!r:.60} had no run in {stage}; campaigns here: {listing}.")


def latest_runs(client: "DynamoDBClient", stage: str, campaign: str, limit: int = 10) -> list[Run]:
    """Return the latest runs of a campaign, the newest first."""
    with suppress(client.exceptions.ResourceNotFoundException):  # the stage has no campaigns
        return _runs(client, stage).of_campaign(campaign, limit)
    return []


def bounds_of_failures(
    client: "DynamoDBClient", stage: str, campaign: str, since: str, now_s: float
) -> dict[str, str]:
    """Return the `bounds` of a list of failures. By default it begins with the run of a filter such as
    `spring#2026`, or a day ago if the filter does not name a run, or if the stage has lost the run."""
    name, _, run = campaign.partition("#")
    entry = None
    with suppress(client.exceptions.ResourceNotFoundException):  # the stage has no campaigns
        entry = _runs(client, stage).read(name, run) if run and not since else None
    return bounds(since or (iso(entry.begun_at) if entry and entry.starts else "24h"), "", now_s)


def _runs(client: "DynamoDBClient", stage: str) -> Runs:
    return Runs(client, stage_name(stage, "campaign-runs"))
