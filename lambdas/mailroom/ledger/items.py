"""Attributes of the ledger's items, in DynamoDB's form.

Producers import this module as well, so it needs boto3 only.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from mailroom.aws.dynamo_values import Sets, number, string, strings

if TYPE_CHECKING:
    from mailroom.message.message import Message

MAX_HISTORY = 50
"""Entries in `history`: the 20 attempts of a fax, and the events of its provider; about 2.5 KB."""
MAX_ERROR = 500
"""Characters of an error's message: an item stays near one write unit."""
MAX_KEPT = 2048
"""Characters of an attribute of an invalid item: the attribute may be anything, up to 400 KB."""

PROVIDER_FACTS = (
    *("recipients", "sentAt", "deliveredAt", "delayedAt", "delay_type", "undeliveredAt", "error_code"),
    *("bouncedAt", "bounce_type", "bounce_subtype", "diagnostic_code"),
    *("complainedAt", "complaint_type", "complaint_subtype"),
    *("openedAt", "clickedAt", "readAt", "carrier_done_date"),
)
"""Attributes that providers' events leave in an item."""
ERASED_AT = "erased_at"
"""Time in epoch milliseconds when an item was emptied. Its message cannot be sent again."""
REDIRECTED_TO = "redirected_to"
"""Recipient that got a message in place of its own recipients, by the stage's settings."""
LINES = "lines"
"""Index of the messages that occupy a line, by line and time of submission."""


class MessageKey(Protocol):
    """Anything with the id and event_type of a message."""

    @property
    def id(self) -> str: ...

    @property
    def event_type(self) -> str: ...


def where(key: MessageKey) -> Sets:
    """Return the primary key of a message's item."""
    return {"id": string(key.id), "event_type": string(key.event_type)}


def addressing_of(to: str | list[str] | None, callback_url: str | None, topic: str | None = None) -> Sets:
    """Return those of a message's recipients, topic and callback URL that are given."""
    sets: Sets = {}
    if to:
        sets["to"] = strings(to)
    if topic:
        sets["topic"] = string(topic)
    if callback_url:
        sets["callback_url"] = string(callback_url)
    return sets


def about_of(message: "Message") -> Sets:
    """Return a message's recipients, topic and callback URL, and the attributes that lists show."""
    addressing = addressing_of(message.recipient, message.callback_url, message.topic)
    return addressing | facts_of(message.headline)


def addressing_of_any(item: Mapping[str, Any]) -> Sets:
    """Return the valid part of the addressing of an item that may be wrong in any way."""
    to, callback_url = item.get("to") or item.get("email"), item.get("callback_url")
    return addressing_of(_short(to), _short(callback_url))


def _short(value: object) -> str | None:
    return value if isinstance(value, str) and len(value) <= MAX_KEPT else None


def entries_of(addressees: Sequence[str]) -> Sets:
    """Return `recipients`, which has an entry for the outcome of each of several addressees.

    Entries are added here only, so an event changes the entries of the message's own addressees alone.
    """
    if len(addressees) < 2:
        return {}
    return {"recipients": {"M": {addressee: {"M": {}} for addressee in addressees}}}


def facts_of(facts: Mapping[str, str | int]) -> Sets:
    """Encode facts for DynamoDB."""
    return {name: string(value) if isinstance(value, str) else number(value) for name, value in facts.items()}


def trouble_of(code: str, message: str) -> Sets:
    """Return `trouble`, the reason why the latest try has not sent a message; {} without a code."""
    return {"trouble": _reason(code, message)} if code else {}


def error_of(code: str, message: str, field: str = "") -> Sets:
    """Return `error`, the reason why a message failed; `field` is the invalid attribute, if there is one."""
    error = _reason(code, message)
    if field:
        error["M"]["field"] = string(field)
    return {"error": error}


def _reason(code: str, message: str) -> dict[str, Sets]:
    return {"M": {"code": string(code), "message": string(message[:MAX_ERROR])}}
