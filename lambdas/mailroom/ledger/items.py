"""The ledger's items: their attributes in DynamoDB's form, and a change of one as the stream tells it."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from mailroom.aws.dynamo_values import Sets, Value, number, plain, string, strings
from mailroom.clock import epoch
from mailroom.message.message import Key, Message
from mailroom.message.outcome import Status, before

MAX_HISTORY = 50
"""Entries in `history`: the 20 attempts of a fax and what its provider says of them; about 2.5 KB."""
MAX_ERROR = 500
"""Characters of an error's message: an item stays near one write unit."""
MAX_KEPT = 2048
"""Characters of an attribute of an item that is refused: it may be anything, up to 400 KB."""

_NO_CALLBACKS: Value = {"M": {}}
PROVIDER_FACTS = (
    *("recipients", "sentAt", "deliveredAt", "delayedAt", "delay_type", "undeliveredAt", "error_code"),
    *("bouncedAt", "bounce_type", "bounce_subtype", "diagnostic_code"),
    *("complainedAt", "complaint_type", "complaint_subtype"),
    *("openedAt", "clickedAt", "readAt", "carrier_done_date"),
)
"""What providers' events leave in an item."""
ERASED_AT = "erased_at"
"""When, in epoch milliseconds, an item was emptied. A message with it cannot be sent again."""
REDIRECTED_TO = "redirected_to"
"""Who got a message in place of those that it was for, by the stage's settings."""
LINES = "lines"
"""The index of what occupies a line, by line and time of submission."""


def where(key: Key) -> Sets:
    """A message's key in DynamoDB's form."""
    return {"id": string(key.id), "event_type": string(key.event_type)}


def addressing_of(to: str | list[str] | None, callback_url: str | None, topic: str | None = None) -> Sets:
    """Whom a message is for, what about, and who wants to hear of it."""
    sets: Sets = {}
    if to:
        sets["to"] = strings(to)
    if topic:
        sets["topic"] = string(topic)
    if callback_url:
        sets["callback_url"] = string(callback_url)
        sets["callbacks"] = _NO_CALLBACKS  # DynamoDB adds no entry to a map that is not there
    return sets


def about_of(message: Message) -> Sets:
    """Whom a message is for, what about, who wants to hear of it, and what lists show of it."""
    addressing = addressing_of(message.recipient, message.callback_url, message.topic)
    return addressing | facts_of(message.headline)


def each_of(addressees: Sequence[str]) -> Sets:
    """An entry for each of several addressees, for what becomes of it. No other name can enter later, so an
    event can tell of none but the message's own."""
    if len(addressees) < 2:
        return {}
    return {"recipients": {"M": {each: {"M": {}} for each in addressees}}}


def facts_of(facts: Mapping[str, str | int]) -> Sets:
    """Facts in DynamoDB's form."""
    return {name: string(value) if isinstance(value, str) else number(value) for name, value in facts.items()}


def trouble_of(code: str, message: str) -> Sets:
    """What keeps a message from being sent; nothing where there is no word for it."""
    if not code:
        return {}
    return {"trouble": {"M": {"code": string(code), "message": string(message[:MAX_ERROR])}}}


def earlier_than(status: Status) -> Sets:
    """The statuses that `status` may replace, by the placeholders of a condition."""
    return {f":before{at}": string(each) for at, each in enumerate(before(status))}


def addressing_of_any(item: Mapping[str, Any]) -> Sets:
    """What is usable of the addressing of an item that may be wrong in any way, shortened."""
    to, callback_url = item.get("to") or item.get("email"), item.get("callback_url")
    return addressing_of(_short(to), _short(callback_url))


def provider_of(provider: str, provider_id: str) -> Sets:
    """The provider that has a message, and the message's id there."""
    return {"provider": string(provider), "provider_id": string(provider_id)}


def error_of(code: str, message: str, field: str = "") -> Sets:
    """What went wrong, for programs and for people; `field` is the attribute at fault ("": none is)."""
    said = {"code": string(code), "message": string(message[:MAX_ERROR])}
    return {"error": {"M": {**said, "field": string(field)} if field else said}}


def _short(value: object) -> str | None:
    return value if isinstance(value, str) and len(value) <= MAX_KEPT else None


class LedgerChange(Struct, frozen=True):
    """The item before ({}: it is new) and after, in plain Python."""

    old: Mapping[str, Any]
    new: Mapping[str, Any]

    @property
    def key(self) -> Key:
        return Key(self.new["id"], self.new["event_type"])

    @property
    def status(self) -> str:
        return str(self.new.get("status", ""))

    @property
    def attempts(self) -> int:
        """Attempts that have ended."""
        return int(self.new.get("attempts", 0))

    @property
    def generation(self) -> int:
        """How often it was reopened."""
        return int(self.new.get("generation", 0))

    @property
    def at(self) -> float:
        """When, in epoch seconds: the same however often the stream tells of it."""
        return epoch(self.new["updatedAt"])

    @property
    def moved(self) -> bool:
        """Whether its status is another than before. A claim always stands between two that are the same."""
        return self.new.get("status") != self.old.get("status")

    @property
    def reopened(self) -> bool:
        """Whether it was resent by hand: that begins a life, and is no outcome of one."""
        return int(self.old.get("generation", 0)) != self.generation


def change_of(record: Mapping[str, Any]) -> LedgerChange | None:
    """The change in a stream's record; None where an item went, which is no outcome."""
    images = record["dynamodb"]
    if record["eventName"] == "REMOVE" or "NewImage" not in images:
        return None
    return LedgerChange(plain(images.get("OldImage", {})), plain(images["NewImage"]))
