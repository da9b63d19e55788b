"""Who may not be sent anything, and why. `Choices.find` asks both tables in one read, `BatchChoices` for all
recipients of a batch.

`AllowedRecipients` says whom the stage may reach at all, by its settings.

The suppression list holds recipients who bounced, complained, are gone or sent STOP: one item a recipient and
channel. Lifting one leaves the time of it behind: a copy of the event that put the recipient there, however
late, does not put it back; a newer event does.

STOP and START stand beside the other reasons, so that START ends a STOP and nothing else. The item keeps the
latest of each by the provider's time, and the later of the two counts; if the times are the same, STOP. So
any order and any number of copies end the same.

Preferences hold the topics that a recipient has opted out of: one item a recipient and topic, of whatever
channel, for the recipient's form tells channels apart. Opting in again leaves the time of it behind and takes
the rest away. A repeat of either changes nothing.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

from msgspec import Struct, convert

from mailroom.aws import clients
from mailroom.aws.dynamo import Sets, batch_get, number, plain, string, try_update, values_of
from mailroom.clock import Clock, iso, milliseconds
from mailroom.message.address import spellings
from mailroom.telemetry import logger

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

    # A function that sends nothing need not load them.
    from mailroom.environment import SuppressingSender
    from mailroom.message.message import Message
    from mailroom.message.outcome import Rejected

Reason = Literal["bounce", "complaint", "gone", "stop", "operator"]

MAX_DETAIL = 300
TOPICS = "topics"
"""The index of opt-outs, by topic and time."""


class Suppression(Struct, frozen=True):
    """Why a recipient gets nothing more on a channel: since `at` (epoch milliseconds, by the provider's
    clock), told by an event of message `message_id` ("": of none); `detail` is for people."""

    recipient: str
    channel: str
    reason: Reason
    at: int
    detail: str = ""
    message_id: str = ""


class _Table:
    """A table of recipients of one stage, who are canonical: see `Message.addressees`."""

    def __init__(self, client: "DynamoDBClient", table: str, clock: Clock = time.time) -> None:
        self.client = client
        self.table = table
        self._clock = clock

    @classmethod
    def of(cls, table: str) -> Self:
        """The table, by the process's own client."""
        return cls(clients.dynamodb(), table)


class Suppressions(_Table):
    """The suppression list of one stage."""

    def find(self, channel: str, recipients: Iterable[str]) -> dict[str, Suppression]:
        """The `recipients` who are on the list, in one read for every hundred of them. Raises
        UnprocessedKeys."""
        keys = [listed_key(each, channel) for each in dict.fromkeys(recipients)]
        items = batch_get(self.client, {self.table: keys})[self.table]
        return {found.recipient: found for found in map(suppression_of, items) if found}

    def mark(self, suppression: Suppression) -> bool:
        """Put a recipient on the list. False where that was known, or older than its lifting. A STOP that is
        older than a START is kept and changes nothing."""
        key = listed_key(suppression.recipient, suppression.channel)
        entry: Sets = {
            "at": number(suppression.at),
            "detail": string(suppression.detail[:MAX_DETAIL]),
            "message_id": string(suppression.message_id),
        }
        if suppression.reason == "stop":
            expression = "SET stopped = :stopped"
            condition = """(attribute_not_exists(lifted_at) OR lifted_at < :at)
                AND (attribute_not_exists(stopped) OR stopped.#at < :at)"""
            values: Sets = {":stopped": {"M": entry}, ":at": entry["at"]}
            return try_update(self.client, self.table, key, expression, condition, values)[0]
        expression = "SET reason = :reason, #at = :at, detail = :detail, message_id = :message_id"
        condition = """(attribute_not_exists(lifted_at) OR lifted_at < :at)
            AND attribute_not_exists(reason)"""
        values = values_of({"reason": string(suppression.reason), **entry})
        if suppression.reason == "complaint":
            # A complaint weighs more than a bounce: the one is a mailbox's, the other a person's will.
            condition = """(attribute_not_exists(lifted_at) OR lifted_at < :at)
                AND (attribute_not_exists(reason) OR reason <> :reason)"""
        return try_update(self.client, self.table, key, expression, condition, values)[0]

    def start(self, recipient: str, channel: str, at: int) -> bool:
        """End a STOP of `at` (epoch milliseconds, by the provider's clock) or before, whether it is known yet
        or comes later; every other reason stays. False: a START as late is known."""
        return try_update(
            self.client,
            self.table,
            listed_key(recipient, channel),
            "SET started_at = :at",
            "attribute_not_exists(started_at) OR started_at < :at",
            {":at": number(at)},
        )[0]

    def lift(self, recipient: str, channel: str, why: str = "") -> bool:
        """Take a recipient off the list; `why` is kept, for people. False: it did not stand there."""
        now = milliseconds(self._clock())
        lifted, item = try_update(
            self.client,
            self.table,
            listed_key(recipient, channel),
            "SET lifted_at = :now, lifted_why = :why REMOVE reason, #at, detail, message_id, stopped",
            "attribute_exists(reason) OR attribute_exists(stopped)",
            {":now": number(now), ":why": string(why[:MAX_DETAIL])},
        )
        # At our own time: the SDK's second try, after the answer to the first was lost.
        return lifted or item.get("lifted_at") == now

    def listed(self) -> Iterator[Suppression]:
        """All who are on the list, in no order."""
        pages = self.client.get_paginator("scan").paginate(
            TableName=self.table, FilterExpression="attribute_exists(reason) OR attribute_exists(stopped)"
        )
        found = (suppression_of(plain(item)) for page in pages for item in page["Items"])
        yield from (each for each in found if each is not None)


def listed_key(recipient: str, channel: str) -> Sets:
    """Where a recipient stands."""
    return {"recipient": string(recipient), "channel": string(channel)}


def suppression_of(item: Mapping[str, Any]) -> Suppression | None:
    """A plain item of the table; None: it was lifted, or STOP was followed by START."""
    stopped = item.get("stopped")
    if stopped and item.get("started_at", 0) <= stopped["at"]:
        return convert({**item, "reason": "stop", **stopped}, Suppression)
    return convert(dict(item), Suppression) if "reason" in item else None


By = Literal["one-click", "page", "operator"]
"""Who made the choice: a mail program's button (RFC 8058), the page behind the link, one of us for them."""

Pair = tuple[str, str]
"""A recipient and a topic."""


class OptOut(Struct, frozen=True):
    """A recipient wants nothing more of a topic, since `opted_out_at` (epoch milliseconds)."""

    recipient: str
    topic: str
    opted_out_at: int
    by: By


class Preferences(_Table):
    """The opt-outs of one stage."""

    def find(self, wanted: Iterable[Pair]) -> dict[Pair, OptOut]:
        """The pairs that were opted out of, in one read for every hundred of them. Raises UnprocessedKeys."""
        asked = {pair: _spelt(pair) for pair in wanted}
        pairs = dict.fromkeys(each for spelt in asked.values() for each in spelt)
        keys = [choice_key(*pair) for pair in pairs]
        items = batch_get(self.client, {self.table: keys})[self.table]
        known = {(found.recipient, found.topic): found for found in map(opt_out_of, items) if found}
        return {pair: known[each] for pair, spelt in asked.items() for each in spelt if each in known}

    def get(self, recipient: str, topic: str) -> OptOut | None:
        """The choice as it stands this moment; None: nobody opted out."""
        for pair in _spelt((recipient, topic)):
            reply = self.client.get_item(TableName=self.table, Key=choice_key(*pair), ConsistentRead=True)
            if found := opt_out_of(plain(reply.get("Item", {}))):
                return found
        return None

    def opt_out(self, recipient: str, topic: str, by: By) -> bool:
        """Nothing more of the topic to the recipient. False: that was so already."""
        now = self._now()
        out, item = try_update(
            self.client,
            self.table,
            choice_key(recipient, topic),
            "SET opted_out_at = :now, #by = :by REMOVE opted_in_at",
            "attribute_not_exists(opted_out_at)",
            {":now": number(now), ":by": string(by)},
        )
        return out or (item.get("opted_out_at"), item.get("by")) == (now, by)

    def opt_in(self, recipient: str, topic: str) -> bool:
        """The topic may be sent again. False: nobody had opted out."""
        changed = [self._opt_in(*pair) for pair in _spelt((recipient, topic))]
        return any(changed)

    def _opt_in(self, recipient: str, topic: str) -> bool:
        now = self._now()
        back, item = try_update(
            self.client,
            self.table,
            choice_key(recipient, topic),
            "SET opted_in_at = :now REMOVE opted_out_at, #by",
            "attribute_exists(opted_out_at)",
            {":now": number(now)},
        )
        return back or item.get("opted_in_at") == now

    def opted_out_since(self, topic: str, since: int) -> int:
        """How many have opted out of a topic since then (epoch milliseconds), and not opted in again."""
        pages = self.client.get_paginator("query").paginate(
            TableName=self.table,
            IndexName=TOPICS,
            Select="COUNT",
            KeyConditionExpression="topic = :topic AND opted_out_at >= :since",
            ExpressionAttributeValues={":topic": string(topic), ":since": number(since)},
        )
        return sum(page["Count"] for page in pages)

    def _now(self) -> int:
        return milliseconds(self._clock())


def _spelt(pair: Pair) -> list[Pair]:
    """The pair by each name that the table may have for its recipient."""
    return [(form, pair[1]) for form in spellings(pair[0])]


def choice_key(recipient: str, topic: str) -> Sets:
    """Where a choice stands."""
    return {"recipient": string(recipient), "topic": string(topic)}


def opt_out_of(item: Mapping[str, Any]) -> OptOut | None:
    """A plain item of the table; None: it was opted in again, or is not there ({})."""
    return convert(dict(item), OptOut) if "opted_out_at" in item else None


_WHY = {
    "bounce": "it bounced",
    "complaint": "its owner complained",
    "gone": "its provider dropped it",
    "stop": "its owner opted out",
    "operator": "an operator put it there",
}


class Wanted(Struct, frozen=True):
    """Whom a message is for, in the one form that the tables know, and what it is about (None: no topic)."""

    recipient: str
    topic: str | None = None


class Unwanted(Struct, frozen=True):
    """Why somebody gets nothing: a `code` for programs, a `sentence` for people."""

    code: str
    sentence: str


_NOT_ALLOWED = Unwanted(
    "not_allowed_here", "this stage sends only to those whom its setting recipients.only names"
)


class Choices:
    """Asks both tables of one stage."""

    def __init__(self, suppressed: Suppressions, opted_out: Preferences) -> None:
        self._suppressed = suppressed
        self._opted_out = opted_out

    def find(self, channel: str, wanted: Iterable[Wanted]) -> dict[Wanted, Unwanted]:
        """The part of `wanted` that may not be sent. Nobody can opt out of a message without a topic, so
        nothing is read for it. Raises UnprocessedKeys."""
        asked = list(dict.fromkeys(wanted))
        if not asked:
            return {}
        one, other = self._suppressed.table, self._opted_out.table
        # One person may be wanted for several topics, and DynamoDB refuses a key that is asked for twice.
        spelt = dict.fromkeys((form, each.topic) for each in asked for form in spellings(each.recipient))
        keys = {one: [listed_key(form, channel) for form in dict.fromkeys(form for form, _ in spelt)]}
        topical = [choice_key(form, topic) for form, topic in spelt if topic is not None]
        if topical:
            keys[other] = topical
        items = batch_get(self._suppressed.client, keys)
        listed = {found.recipient: found for found in map(suppression_of, items[one]) if found}
        chosen = {
            (found.recipient, found.topic): found for found in map(opt_out_of, items.get(other, ())) if found
        }
        return {each: why for each in asked if (why := _why(each, listed, chosen))}


def _why(
    wanted: Wanted, listed: dict[str, Suppression], chosen: dict[tuple[str, str], OptOut]
) -> Unwanted | None:
    forms = spellings(wanted.recipient)
    if suppression := next((listed[form] for form in forms if form in listed), None):
        return Unwanted("suppressed", _suppressed(suppression))
    topical = ((form, wanted.topic) for form in forms if wanted.topic is not None)
    opt_out = next((chosen[pair] for pair in topical if pair in chosen), None)
    return None if opt_out is None else opted_out(opt_out)


def opted_out(found: OptOut) -> Unwanted:
    """What the ledger says of somebody who has opted out."""
    since = iso(found.opted_out_at / 1000)[:10]
    sentence = f"opted out of {found.topic!r} on {since}; whoever opted out can opt in again"
    return Unwanted("opted_out", sentence)


def _suppressed(found: Suppression) -> str:
    since = iso(found.at / 1000)[:10]
    detail = f" ({found.detail})" if found.detail else ""
    end = "a text START ends it" if found.reason == "stop" else "an operator can lift it"
    return f"on the suppression list since {since}: {_WHY[found.reason]}{detail}; {end}"


class BatchChoices:
    """Whoever is on the suppression list gets nothing more, and whoever has opted out of a topic gets nothing
    of that. A recipient that turns out to be gone, or to have opted out at the provider, enters the list."""

    def __init__(self, settings: "SuppressingSender", client: "DynamoDBClient", clock: Clock) -> None:
        self._channel = settings.channel
        self._clock = clock
        self._list = Suppressions(client, settings.suppressions_table, clock)
        self._choices = Choices(self._list, Preferences(client, settings.preferences_table, clock))
        self._asked: set[Wanted] = set()
        self._unwanted: dict[Wanted, Unwanted] = {}

    def begin(self, messages: Iterable["Message"]) -> None:
        """Ask for all recipients of a batch in one read. Raises nothing."""
        self._asked, self._unwanted = set(), {}
        try:
            self._ask(each for message in messages for each in _wanted(message))
        except Exception:  # noqa: BLE001 - logged; each message asks for itself, and waits where it cannot
            logger.warning("who may get nothing could not be read", exc_info=True)

    def unwanted(self, message: "Message") -> dict[str, Unwanted]:
        """Recipients who must not get the message, each with the reason."""
        wanted = _wanted(message)
        self._ask(wanted)
        return {each.recipient: self._unwanted[each] for each in wanted if each in self._unwanted}

    def mark(self, message: "Message", outcome: "Rejected") -> None:
        """Put the message's recipients on the suppression list."""
        now = milliseconds(self._clock())
        why: Reason = "stop" if outcome.opted_out else "gone"
        for each in message.addressees:
            self._list.mark(Suppression(each, message.event_type, why, now, outcome.reason, message.id))

    def _ask(self, wanted: Iterable[Wanted]) -> None:
        new = [each for each in wanted if each not in self._asked]
        if new:
            # In this order: for other threads, who was asked for is answered.
            self._unwanted.update(self._choices.find(self._channel, new))
            self._asked.update(new)


def _wanted(message: "Message") -> list[Wanted]:
    return [Wanted(each, message.topic) for each in message.addressees]


class AllowedRecipients:
    """Whom a stage may reach that may not reach everybody: the settings' `recipients`."""

    def __init__(self, channel: str, only: Iterable[str], redirect_to: str) -> None:
        """`only` has mail addresses and domains in lower case, `+` with the first digits of numbers, and
        `channel:recipient`. A domain is for mails alone and a `+` for whole numbers, since a device's token
        may hold anything. `redirect_to` is who gets what is for others; "": nobody does."""
        self._channel = channel
        self._exact = {*only, redirect_to} - {""}
        self._prefixes = tuple(each for each in only if each.startswith("+"))
        self._redirect_to = redirect_to

    def redirect(self, reached: Iterable[str]) -> str | None:
        """Who gets a message that reaches these, in their place. None: nobody else does."""
        return (self._redirect_to or None) if self.refused(reached) else None

    def refused(self, reached: Iterable[str]) -> dict[str, Unwanted]:
        """The recipients among `reached` whom the stage may not reach. A message that names nobody could
        reach anybody."""
        return {each: _NOT_ALLOWED for each in tuple(reached) or ("",) if not self._allows(each)}

    def _allows(self, recipient: str) -> bool:
        if not {recipient, f"{self._channel}:{recipient}"}.isdisjoint(self._exact):
            return True
        if self._channel == "mail":
            return recipient.rpartition("@")[2] in self._exact
        return recipient.startswith(self._prefixes) and recipient[1:].isdecimal()
