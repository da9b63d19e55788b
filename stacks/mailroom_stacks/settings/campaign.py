"""Settings of a campaign, in its campaign.toml."""

import re
import zoneinfo
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue

from mailroom.campaigns.definition import MAX_PAGES, PAGE_SIZE, RECIPIENTS_PER_MESSAGE
from mailroom.message.message import MAX_TOPIC
from mailroom.message.unless import Word
from mailroom_stacks.settings.sections import DatabaseName, EventType, Section, hours

OWN = (
    *("id", "event_type", "lane", "topic", "template", "expires_at", "send_at", "attempt", "ttl"),
    *("window", "unless"),
)
"""Attributes that a campaign may not set under `attributes`, because it has other settings for them or they
are reserved for Mailroom."""
ADDRESSES = ("to", "email", "cc", "bcc")
"""Further attributes that a campaign may not set under `attributes`. They would send all messages to the same
address, or add an addressee, and a mail with several addressees cannot have an unsubscribe link."""
_STAGE = r"\{stage\}"
# A location becomes part of an IAM policy, so it may not contain wildcards or variables of IAM.
_LOCATION = rf"^s3://([a-z0-9.-]|{_STAGE})+/([^*?${{}}\x00-\x1f]|{_STAGE})*\.(csv|jsonl)$"
_CRON_FIELD = r"[0-9A-Za-z*?,/#-]+"
_NOT_PYTHONS = re.compile(r"%(?!%|\(scheduled_at\)s)")


def _cron(expression: str) -> str:
    """Validate a cron expression of six fields, and return it: minutes, hours, day of month, month, day of
    week, year."""
    fields = expression.split()
    if len(fields) != 6 or not all(re.fullmatch(_CRON_FIELD, field) for field in fields):
        raise ValueError(
            "does not have six fields; write minutes, hours, day of month, month, day of week and year, "
            "such as '0 13 ? * WED *'"
        )
    if (fields[2] == "?") == (fields[4] == "?"):
        raise ValueError("needs ? as the day of month or as the day of week, and not as both")
    return expression


def _time_zone(name: str) -> str:
    if name not in zoneinfo.available_timezones() or name.startswith(("posix", "right/", "localtime")):
        raise ValueError("is not a time zone; use a name such as Europe/Berlin or UTC")
    return name


def _never(value: object) -> object:
    """Return None for `false`, because TOML lacks null."""
    return None if value is False else value


def _query(text: str) -> str:
    if _NOT_PYTHONS.search(text.replace("%%", "")):
        raise ValueError("has a % that is not part of %(scheduled_at)s; write %% for a literal %")
    return text


def _attributes(attributes: dict[str, JsonValue]) -> dict[str, JsonValue]:
    for name in attributes:
        if name in OWN:
            raise ValueError(f"sets {name!r}, which is not allowed in attributes; remove it")
        if name in ADDRESSES:
            raise ValueError(
                f"sets {name!r}, so that all messages would have the same address; remove it, because the "
                "addresses come from the audience"
            )
    return attributes


def _topic(name: str) -> str:
    """Validate a topic by the same rules as the attribute `topic` of a message, and return it."""
    if not (1 <= len(name) <= MAX_TOPIC and name.isprintable()):
        raise ValueError(f"is not a valid topic; use 1 to {MAX_TOPIC} printable characters")
    return name


class Schedule(Section):
    """Times at which EventBridge Scheduler starts the campaign."""

    cron: Annotated[str, AfterValidator(_cron)]
    """Cron expression of six fields, as in EventBridge Scheduler, such as '0 13 ? * WED *'."""
    time_zone: Annotated[str, AfterValidator(_time_zone)] = "UTC"
    """Time zone of the cron expression."""


class Audience(Section):
    """People who get the campaign's messages, and the source of their data."""

    kind: Literal["postgresql", "file", "module"]
    """Source of the people: the rows of a query, the lines of a file in S3, or the function `recipients` of
    campaign.py."""
    key: str | None = Field(default=None, pattern=r"^[^\x00-\x1f]{1,255}$")
    """Column that identifies a person. It must not contain addresses, because it becomes part of message
    ids."""
    columns: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Columns that must have a value for each person."""
    database: DatabaseName | None = None
    """For postgresql: the name of one of the stage's databases."""
    query: Annotated[str, AfterValidator(_query)] | None = Field(default=None, min_length=1)
    """For postgresql: one SELECT statement, in which %(scheduled_at)s is the scheduled time of the run."""
    location: str | None = Field(default=None, pattern=_LOCATION)
    """For file: s3://bucket/key; its extension, .csv or .jsonl, determines the format."""
    map: dict[str, Annotated[str, Field(min_length=1)]] | None = None
    """For file: the names of attributes by column, as in {"First Name" = "first_name"}."""


class Unless(Section):
    """Condition on another message to the same person. If that message has one of the statuses, the person
    does not get the campaign's message."""

    column: Annotated[str, Field(min_length=1)]
    """Column of the audience that contains the id of the other message. If it is empty, the campaign's
    message is sent."""
    event_type: EventType
    """Channel of the other message."""
    status: tuple[Word, ...] = Field(min_length=1)
    """Statuses of the other message, such as ["sent", "delivered"]. Any of them prevents the campaign's
    message."""


class Campaign(Section):
    """Settings of one campaign."""

    channel: EventType
    """Channel of the messages."""
    topic: Annotated[str, AfterValidator(_topic)] | None = None
    """Topic that people can opt out of; optional only if the channel is sms or push."""
    window: Annotated[dict[str, str], AfterValidator(hours)] | None = None
    """Hours in which messages may be sent: from, to, days and zone, as in the setting `window` of a channel.
    A column `time_zone` overrides the zone."""
    unless: Unless | None = None
    """Condition on another message to the same person, under which the campaign's message is not sent."""
    template: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")
    """Name of the template, which is a folder in templates/<channel>/."""
    concurrency: int = Field(default=5, ge=2, le=1000)
    """Maximum number of functions that compose messages at a time. All campaigns of a stage share one queue,
    so the lowest number of them applies. Each function has one connection to each database that it
    queries."""
    page_size: int = Field(default=PAGE_SIZE, ge=1, le=10_000)
    """Number of people to collect at a time."""
    recipients_per_message: int = Field(default=RECIPIENTS_PER_MESSAGE, ge=1, le=500)
    """Number of people whose messages are composed together, and composed again together after a failure."""
    max_pages: int = Field(default=MAX_PAGES, ge=1, le=10_000_000)
    """Maximum number of pages of a run, in case its audience never ends."""
    expires_after_hours: float | None = Field(default=None, ge=0.1, le=8_760)
    """Hours from the scheduled time of a run until its messages expire; null means that they never expire."""
    stop_at: Annotated[Annotated[float, Field(gt=0, le=100)] | None, BeforeValidator(_never)] = 5
    """Percentage of bounced mails above which a run pauses itself, from 20 bounced mails on. It also pauses
    itself if more than 0.1 % of its mails, and at least 8, have caused complaints. false or null means that
    the runs never pause themselves. The stage needs the setting search. Other channels do not report
    bounces."""
    databases: tuple[DatabaseName, ...] = ()
    """Databases of the stage that campaign.py queries, besides the database of the audience."""
    attributes: Annotated[dict[str, JsonValue], AfterValidator(_attributes)] = Field(default_factory=dict)
    """Further attributes of every message; attributes that campaign.py composes override them. The columns of
    the audience become variables of the template; of the attributes that Mailroom itself uses, a column can
    only set the address."""
    schedule: Schedule | None = None
    """Schedule of the campaign; null means that it only starts by the command `mailroom campaign start`."""
    audience: Audience
    """People who get the messages."""
