"""Attributes of the ledger's items, in DynamoDB's form.

Producers import this module as well, so boto3 is the only package that it may import.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from mailroom.aws.dynamo_values import Sets, image_of, number, string, strings
from mailroom.message import CAMPAIGN_START

if TYPE_CHECKING:
    from mailroom.message.message import CampaignStart, Message

MAX_HISTORY = 50
"""Maximum number of entries in `history`: enough for the 20 attempts of a fax and the events of its provider;
about 2.5 KB."""
MAX_ERROR = 500
"""Maximum number of characters of an error's message in a ledger item, so that the item stays near one write
unit."""
MAX_KEPT = 2048
"""Maximum number of characters that the ledger stores of an invalid item's attribute, whose value may have up
to 400 KB."""

PROVIDER_FACTS = (
    *("recipients", "sentAt", "deliveredAt", "delayedAt", "delay_type", "undeliveredAt", "error_code"),
    *("bouncedAt", "bounce_type", "bounce_subtype", "diagnostic_code"),
    *("complainedAt", "complaint_type", "complaint_subtype"),
    *("openedAt", "clickedAt", "readAt", "carrier_done_date", "pages", "sent_from"),
)
"""Attributes that providers' events write into a ledger item."""
ERASED_AT = "erased_at"
"""Attribute with the time in epoch milliseconds at which an erasure emptied the item. The message of such an
item cannot be sent again."""
REDIRECTED_TO = "redirected_to"
"""Attribute with the recipient to whom the stage's settings redirected a message, instead of its
recipients."""
WAIT = "wait"
"""Attribute of a message that may not be sent yet: a map with the reason, the lane, the number of recipients
and other data of the wait. It is valid only while the message's status is `scheduled`."""
MARK = (WAIT, "waits_in", "waits_at")
"""Attributes of a message that may not be sent yet. The last two are the keys of the index `waiting`."""
PAUSED = "paused"
"""State of a campaign run that an operator has paused, and the reason why its messages wait. It is
independent of the run's attribute `state`, which a pause does not change."""
RESTARTED = ("restarted", "superseded")
"""Codes in `history` of a message that was prepared for a later start of its campaign's run: after it was
cancelled, or before an attempt had ended, which ends that attempt."""
RUN_UNKNOWN = "run_unknown"
"""State of a campaign run that does not exist or cannot be read, and the reason why its messages wait."""
ARRIVED_BEFORE = "arrived_before"
"""Attribute with the number of resends by operators after the message may have arrived."""
UNCOUNTED = "uncounted_attempts"
"""Attribute with the number of ended attempts of a fax that do not count towards the maximum, because the
account was at fault or its limit of a day was used up."""
LINES = "lines"
"""Name of the index of messages by the attribute `line` (such as a telephone number) and by the time of the
submit."""


class MessageKey(Protocol):
    """Object with the id and event_type of a message."""

    @property
    def id(self) -> str: ...

    @property
    def event_type(self) -> str: ...


def provider_of(account: str) -> str:
    """Return the name of the provider in a try's account; empty for ANY_ACCOUNT."""
    return account.partition(" ")[0].partition("/")[0]


def where(key: MessageKey) -> Sets:
    """Return the primary key of a message's ledger item, in DynamoDB's form."""
    return {"id": string(key.id), "event_type": string(key.event_type)}


def addressing_of(to: str | list[str] | None, callback_url: str | None, topic: str | None = None) -> Sets:
    """Return a message's recipients, topic and callback URL as item attributes. A missing value is left
    out."""
    sets: Sets = {}
    if to:
        sets["to"] = strings(to)
    if topic:
        sets["topic"] = string(topic)
    if callback_url:
        sets["callback_url"] = string(callback_url)
    return sets


def about_of(message: "Message") -> Sets:
    """Return a message's recipients, topic, callback URL and `unless` conditions, and the attributes that
    lists of messages show, as item attributes."""
    addressing = addressing_of(message.recipient, message.callback_url, message.topic)
    if message.campaign_start is not None:
        addressing |= start_of(message.campaign_start)
    return {**addressing, **facts_of(message.headline), **(_unless_of(message) if message.unless else {})}


def start_of(start: "CampaignStart") -> Sets:
    """Return the start of the campaign's run that composed a message as an item attribute."""
    fields = {
        "campaign": string(start.campaign),
        "run": string(start.run),
        "start": number(start.start),
    }
    return {CAMPAIGN_START: {"M": fields}}


def run_of(item: Mapping[str, Any]) -> tuple[str, str]:
    """Return the names of the campaign and of the run that composed a message, by its item in the ledger or
    in the mailbox, where attributes may be invalid. Returns two empty strings for a message that a producer
    has put, whatever the form of the message's id."""
    start = item.get(CAMPAIGN_START)
    if not isinstance(start, Mapping):
        return "", ""
    return f"{start.get('campaign', '')}", f"{start.get('run', '')}"


def _unless_of(message: "Message") -> Sets:
    conditions = [
        {"id": condition.id, "event_type": condition.event_type, "status": [*condition.statuses]}
        for condition in message.conditions
    ]
    return image_of({"unless": conditions})


def addressing_of_any(item: Mapping[str, Any]) -> Sets:
    """Return the recipients and the callback URL of an invalid item as item attributes, each only if it is
    valid."""
    to, callback_url = item.get("to") or item.get("email"), item.get("callback_url")
    return addressing_of(_short(to), _short(callback_url))


def _short(value: object) -> str | None:
    return value if isinstance(value, str) and len(value) <= MAX_KEPT else None


def entries_of(addressees: Sequence[str]) -> Sets:
    """Return the attribute `recipients` of a message: a map with an empty entry for each recipient, in which
    the recipient's outcome is written later. Returns {} for a message to one recipient.

    Only this function adds entries, so an event cannot add an entry for an address to which the message is
    not sent.
    """
    if len(addressees) < 2:
        return {}
    return {"recipients": {"M": {addressee: {"M": {}} for addressee in addressees}}}


def facts_of(facts: Mapping[str, str | int]) -> Sets:
    """Return attributes of a message, by name, in DynamoDB's form."""
    return {name: string(value) if isinstance(value, str) else number(value) for name, value in facts.items()}


def trouble_of(code: str, message: str) -> Sets:
    """Return the attribute `trouble`, the reason why the latest try did not send the message; {} without a
    code."""
    return {"trouble": _reason(code, message)} if code else {}


def error_of(code: str, message: str, field: str = "") -> Sets:
    """Return the attribute `error`, the reason why a message failed; `field` is the invalid attribute, if
    there is one."""
    error = _reason(code, message)
    if field:
        error["M"]["field"] = string(field)
    return {"error": error}


def _reason(code: str, message: str) -> dict[str, Sets]:
    return {"M": {"code": string(code), "message": string(message[:MAX_ERROR])}}
