"""Settings of a campaign, in its campaign.toml."""

import re
import zoneinfo
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, JsonValue

from mailroom.campaigns.definition import MAX_PAGES, PAGE_SIZE, RECIPIENTS_PER_MESSAGE
from mailroom.message.message import MAX_TOPIC
from mailroom.message.unless import Word
from mailroom_stacks.settings.sections import DatabaseName, EventType, Section, hours

OWN = (
    *("id", "event_type", "lane", "topic", "template", "expires_at", "send_at", "attempt", "ttl"),
    *("window", "unless"),
)
"""Attributes that a campaign may not set under `attributes`: it has other settings for them, or they belong
to the system."""
ADDRESSES = ("to", "email", "cc", "bcc")
"""Attributes that a campaign may not set either: a single address for all messages is never meant, and a
second addressee would take the unsubscribe link away."""
_STAGE = r"\{stage\}"
# A location becomes part of an IAM policy, so it may not contain wildcards or variables of IAM.
_LOCATION = rf"^s3://([a-z0-9.-]|{_STAGE})+/([^*?${{}}\x00-\x1f]|{_STAGE})*\.(csv|jsonl)$"
_CRON_FIELD = r"[0-9A-Za-z*?,/#-]+"
_NOT_PYTHONS = re.compile(r"%(?!%|\(scheduled_at\)s)")


def _cron(expression: str) -> str:
    """Validate six fields: minutes, hours, day of month, month, day of week, year."""
    fields = expression.split()
    if len(fields) != 6 or not all(re.fullmatch(_CRON_FIELD, field) for field in fields):
        raise ValueError(
            "is not six fields; write minutes, hours, day of month, month, day of week and year, such as "
            "'0 13 ? * WED *'"
        )
    if (fields[2] == "?") == (fields[4] == "?"):
        raise ValueError("needs ? as the day of month or as the day of week, and not as both")
    return expression


def _time_zone(name: str) -> str:
    if name not in zoneinfo.available_timezones() or name.startswith(("posix", "right/", "localtime")):
        raise ValueError("is not a time zone; use a name such as Europe/Berlin or UTC")
    return name


def _query(text: str) -> str:
    if _NOT_PYTHONS.search(text.replace("%%", "")):
        raise ValueError("has a % that begins no %(scheduled_at)s; write each other one twice: %%")
    return text


def _attributes(attributes: dict[str, JsonValue]) -> dict[str, JsonValue]:
    for name in attributes:
        if name in OWN:
            raise ValueError(f"sets {name!r}, which a campaign may not set; remove it there")
        if name in ADDRESSES:
            raise ValueError(
                f"sets {name!r}, and everybody's message would go there; remove it, for the audience says "
                "who gets which message"
            )
    return attributes


def _topic(name: str) -> str:
    """Validate a topic by the rules of every message's contract."""
    if not (1 <= len(name) <= MAX_TOPIC and name.isprintable()):
        raise ValueError(f"is not a topic's name; use 1 to {MAX_TOPIC} printable characters")
    return name


class Schedule(Section):
    """Times at which the campaign starts by itself."""

    cron: Annotated[str, AfterValidator(_cron)]
    """Six fields of EventBridge Scheduler, such as '0 13 ? * WED *'."""
    time_zone: Annotated[str, AfterValidator(_time_zone)] = "UTC"
    """Time zone of the cron."""


class Audience(Section):
    """People who get the campaign's messages, and the source of their data."""

    kind: Literal["postgresql", "file", "module"]
    """Source: the rows of a query, the lines of a file in S3, or the people that campaign.py returns."""
    key: str | None = Field(default=None, pattern=r"^[^\x00-\x1f]{1,255}$")
    """Column that identifies people: never an address, because it becomes part of an id."""
    columns: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Columns that may not be empty."""
    database: DatabaseName | None = None
    """For postgresql: one of the stage's databases."""
    query: Annotated[str, AfterValidator(_query)] | None = Field(default=None, min_length=1)
    """For postgresql: one SELECT; %(scheduled_at)s in it is the run's time."""
    location: str | None = Field(default=None, pattern=_LOCATION)
    """For file: s3://bucket/key, whose ending .csv or .jsonl is the format."""
    map: dict[str, Annotated[str, Field(min_length=1)]] | None = None
    """For file: the attribute that a column becomes, as in {"First Name" = "first_name"}."""


class Unless(Section):
    """Outcomes of another message to the same person, after which the person's message is not sent."""

    column: Annotated[str, Field(min_length=1)]
    """Column of the audience with the id of the other message. If it is empty, the message is sent."""
    event_type: EventType
    """Channel of the other message."""
    status: tuple[Word, ...] = Field(min_length=1)
    """Statuses of the other message, of which one is enough, such as ["sent", "delivered"]."""


class Campaign(Section):
    """Settings of one campaign."""

    channel: EventType
    """Channel of the messages."""
    topic: Annotated[str, AfterValidator(_topic)] | None = None
    """Topic that people can opt out of; mail needs one."""
    window: Annotated[dict[str, str], AfterValidator(hours)] | None = None
    """Hours in which messages may go out: from, to, days and zone, as in the setting `window` of a channel. A
    column `time_zone` overrides the zone."""
    unless: Unless | None = None
    """Outcomes of another message to the same person, after which the person's message is not sent."""
    template: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")
    """Folder below templates/ and the channel."""
    concurrency: int = Field(default=5, ge=2, le=1000)
    """Functions that compose at once. All campaigns of a stage share one queue, so the smallest number
    applies. Each function holds one connection to each database that it asks."""
    page_size: int = Field(default=PAGE_SIZE, ge=1, le=10_000)
    """People to collect at once."""
    recipients_per_message: int = Field(default=RECIPIENTS_PER_MESSAGE, ge=1, le=500)
    """People to compose together, and to compose again together after a failure."""
    max_pages: int = Field(default=MAX_PAGES, ge=1, le=10_000_000)
    """Pages after which a run ends, if its audience never does."""
    expires_after_hours: float | None = Field(default=None, ge=0.1, le=8_760)
    """Hours from a run's time after which its messages expire; null: they never do."""
    databases: tuple[DatabaseName, ...] = ()
    """Databases of the stage that campaign.py asks, beside that of the audience."""
    attributes: Annotated[dict[str, JsonValue], AfterValidator(_attributes)] = Field(default_factory=dict)
    """Further attributes of every message; those that campaign.py composes override them. Of an audience's
    columns, only the address becomes an attribute of a message with attributes of its own."""
    schedule: Schedule | None = None
    """null: people start the campaign by hand."""
    audience: Audience
    """People who get the messages."""
