"""Finds the recipients who must not get a message, and the reasons. `Choices.find` reads the suppression list
and the preferences in one call; `BatchChoices` does so for all recipients of a batch. `AllowedRecipients`
applies the stage's setting `recipients`.

The suppression list contains recipients whose mail bounced, who complained, who cannot be reached any more,
or who sent STOP: one item per recipient and channel. When an operator takes a recipient off the list, the
item stores the time. A late copy of the event that suppressed the recipient is ignored then, but a newer
event suppresses the recipient again.

STOP and START are stored separately from the other reasons, because a START only ends a STOP. The item stores
the times of the latest STOP and the latest START, by the provider's clock. The later of the two is valid; if
their times are equal, the STOP is valid. So the result does not depend on the order or the number of events.

Preferences contain the topics that a recipient has opted out of: one item per recipient and topic. The key
does not include the channel, because recipients differ between channels (a mail address, a phone number).
When the recipient opts in again, the opt-in replaces the opt-out. A repeated opt-out or opt-in does not
change the choice. An item also has the way in which the choice was made, and by whom if not by the recipient.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, Self

from msgspec import Struct, convert

from mailroom.aws import clients
from mailroom.aws.dynamo_batches import batch_get
from mailroom.aws.dynamo_updates import Update, try_update, values_of
from mailroom.aws.dynamo_values import Sets, Value, number, plain, string
from mailroom.clock import Clock, iso, milliseconds
from mailroom.message.address import spellings

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

    # These imports are only for types, so that functions that do not send messages need not load the modules.
    from mailroom.message.message import Message
    from mailroom.message.outcome import Rejected

Reason = Literal["bounce", "complaint", "gone", "stop", "operator"]

MAX_DETAIL = 300
"""Maximum number of characters of an explanation (`detail` or `lifted_why`) in an item of the suppression
list."""
TOPICS = "topics"
"""Name of the preferences table's index, which finds opt-outs by topic and time."""


class Suppression(Struct, frozen=True):
    """Entry of the suppression list: the recipient must not get further messages on the channel."""

    recipient: str
    """Recipient in the canonical form: see `Message.addressees`."""
    channel: str
    """Channel on which the recipient is suppressed."""
    reason: Reason
    """Kind of event that suppressed the recipient."""
    at: int
    """Time of that event, in epoch milliseconds by the provider's clock."""
    detail: str = ""
    """Explanation for operators, such as the mail server's error message."""
    message_id: str = ""
    """Id of the message that the event was about, or "" for an event that is not about a message."""
    actor: str = ""
    """ARN of the operator who suppressed the recipient, or "" for any other reason."""


class _Table:
    """A DynamoDB table of one stage. Recipients are passed in the canonical form: see
    `Message.addressees`."""

    def __init__(self, client: "DynamoDBClient", table: str, clock: Clock = time.time) -> None:
        self.client = client
        self.table = table
        self._clock = clock

    @classmethod
    def of(cls, table: str) -> Self:
        """Build the object for the table with the name `table`, with the shared DynamoDB client of the
        process."""
        return cls(clients.dynamodb(), table)

    def _try(self, key: Sets, expression: str, condition: str, values: Sets) -> tuple[bool, dict[str, Any]]:
        return try_update(self.client, self.table, key, expression, condition, values)

    def items(self, forms: Iterable[str]) -> Iterator[dict[str, Any]]:
        """Yield the items of a recipient in these forms, by consistent reads."""
        paginator = self.client.get_paginator("query")
        for form in forms:
            pages = paginator.paginate(
                TableName=self.table,
                KeyConditionExpression="recipient = :recipient",
                ExpressionAttributeValues={":recipient": string(form)},
                ConsistentRead=True,
            )
            yield from (plain(item) for page in pages for item in page["Items"])

    def now(self) -> int:
        """Return the present time in epoch milliseconds."""
        return milliseconds(self._clock())


class Suppressions(_Table):
    """The suppression list of one stage."""

    def find(self, channel: str, recipients: Iterable[str]) -> dict[str, Suppression]:
        """Return the entries of the suppression list for these `recipients`, by recipient. Makes one request
        for every 100 recipients. Raises UnprocessedKeys."""
        keys = [listed_key(recipient, channel) for recipient in dict.fromkeys(recipients)]
        return _listed(batch_get(self.client, {self.table: keys})[self.table])

    def mark(self, suppression: Suppression) -> bool:
        """Put a recipient on the suppression list. Return False if the recipient was on the list already, or
        was taken off the list after the event. A STOP that is older than the latest START is stored, but does
        not suppress the recipient."""
        key = listed_key(suppression.recipient, suppression.channel)
        entry: Sets = {
            "at": number(suppression.at),
            "detail": string(suppression.detail[:MAX_DETAIL]),
            "message_id": string(suppression.message_id),
            "actor": string(suppression.actor),
        }
        if suppression.reason == "stop":
            expression = "SET stopped = :stopped"
            is_new = "attribute_not_exists(stopped) OR stopped.#at < :at"
            values: Sets = {":stopped": {"M": entry}, ":at": entry["at"]}
        else:
            expression = (
                "SET reason = :reason, #at = :at, detail = :detail, message_id = :message_id, actor = :actor"
            )
            is_new = "attribute_not_exists(reason)"
            values = values_of({"reason": string(suppression.reason), **entry})
        if suppression.reason == "complaint":
            # A complaint replaces a bounce: a person's decision matters more than the mailbox's condition.
            is_new += " OR reason <> :reason"
        condition = f"(attribute_not_exists(lifted_at) OR lifted_at < :at) AND ({is_new})"
        return self._try(key, expression, condition, values)[0]

    def start(self, recipient: str, channel: str, started_at: int) -> bool:
        """Store a START, which ends every STOP that was sent earlier, even if the STOP arrives later. Other
        reasons for the suppression remain valid. Return False if this START or a later one is stored already.

        `started_at`: time of the START in epoch milliseconds, by the provider's clock.
        """
        return self._try(
            listed_key(recipient, channel),
            "SET started_at = :at",
            "attribute_not_exists(started_at) OR started_at < :at",
            {":at": number(started_at)},
        )[0]

    def lift(self, recipient: str, channel: str, reason: str = "") -> bool:
        """Take a recipient off the suppression list, and store the operator's `reason`. Return False if the
        recipient was not on the list."""
        lifted_at = self.now()
        lifted, item = self._try(
            listed_key(recipient, channel),
            "SET lifted_at = :now, lifted_why = :why REMOVE reason, #at, detail, message_id, actor, stopped",
            "attribute_exists(reason) OR attribute_exists(stopped)",
            {":now": number(lifted_at), ":why": string(reason[:MAX_DETAIL])},
        )
        # If the item has the same time, this call wrote it: the SDK repeated the write because the response
        # to the first write was lost.
        return lifted or item.get("lifted_at") == lifted_at

    def entries(self, recipient: str) -> list[Suppression]:
        """Return the entries for a recipient on all channels, by consistent reads."""
        return [entry for entry in map(suppression_of, self.items(spellings(recipient))) if entry]

    def listed(self) -> Iterator[Suppression]:
        """Yield all entries of the suppression list, in any order."""
        pages = self.client.get_paginator("scan").paginate(
            TableName=self.table, FilterExpression="attribute_exists(reason) OR attribute_exists(stopped)"
        )
        for page in pages:
            yield from filter(None, map(suppression_of, map(plain, page["Items"])))


def listed_key(recipient: str, channel: str) -> Sets:
    """Return the key of a recipient's item in the suppression list."""
    return {"recipient": string(recipient), "channel": string(channel)}


def _listed(items: Iterable[Mapping[str, Any]]) -> dict[str, Suppression]:
    return {entry.recipient: entry for entry in map(suppression_of, items) if entry}


def suppression_of(item: Mapping[str, Any]) -> Suppression | None:
    """Read an item of the suppression list. Return None if the recipient is not suppressed any more: an
    operator took the recipient off the list, or a START ended the STOP."""
    stopped = item.get("stopped")
    if stopped and item.get("started_at", 0) <= stopped["at"]:
        return convert({**item, "reason": "stop", **stopped}, Suppression)
    return convert(dict(item), Suppression) if "reason" in item else None


By = Literal["one-click", "page", "preferences", "api", "command", "console"]
"""Way in which a choice was made: a button of the mail program (RFC 8058), the page that an opt-out link
opens, the recipient's own page with all topics, an application by the API, a command, or the console."""

Pair = tuple[str, str]
"""A recipient and a topic."""


class OptOut(Struct, frozen=True):
    """A recipient's decision to get no further messages about a topic."""

    recipient: str
    """Recipient in the canonical form: see `Message.addressees`."""
    topic: str
    """Topic that the recipient has opted out of."""
    opted_out_at: int
    """Time at which the recipient opted out, in epoch milliseconds."""
    by: By
    """Way in which the recipient opted out."""
    actor: str = ""
    """Caller of the API, or ARN of the operator, or "" for the recipient."""


class TopicChoice(Struct, frozen=True):
    """A recipient's latest choice about a topic."""

    out: bool
    """Whether the recipient has opted out."""
    at: int
    """Time of the choice, or of its last repetition by an opt-out link, in epoch milliseconds."""
    by: By
    """Way of the choice or of this repetition."""
    ended_at: int | None
    """Time of the opt-out that an application has ended, in epoch milliseconds."""


class Preferences(_Table):
    """The recipients' opt-outs from topics in one stage."""

    def find(self, pairs: Iterable[Pair]) -> dict[Pair, OptOut]:
        """Return the opt-outs among these pairs of recipient and topic. Makes one request for every 100
        pairs. Raises UnprocessedKeys."""
        forms = {pair: _forms(pair) for pair in pairs}
        keys = [choice_key(*form) for form in dict.fromkeys(chain.from_iterable(forms.values()))]
        opt_outs = _opt_outs(batch_get(self.client, {self.table: keys})[self.table])
        return {pair: opt_outs[form] for pair in forms for form in forms[pair] if form in opt_outs}

    def get(self, recipient: str, topic: str) -> OptOut | None:
        """Return the recipient's opt-out from the topic by a consistent read, or None if the recipient has
        not opted out."""
        for form in _forms((recipient, topic)):
            reply = self.client.get_item(TableName=self.table, Key=choice_key(*form), ConsistentRead=True)
            if opt_out := opt_out_of(plain(reply.get("Item", {}))):
                return opt_out
        return None

    def choices(self, recipient: str) -> dict[str, TopicChoice]:
        """Return the recipient's latest choices by topic, by consistent reads. If the recipient's spellings
        differ, an opt-out takes precedence."""
        choices: dict[str, TopicChoice] = {}
        for item in self.items(spellings(recipient)):
            out = "opted_out_at" in item
            time_ms = item.get("repeated_at", item["opted_out_at"]) if out else item["opted_in_at"]
            choice = TopicChoice(out, time_ms, item.get("repeated_by", item["by"]), item.get("ended_at"))
            choices[item["topic"]] = max(
                choice, choices.get(item["topic"], choice), key=lambda one: (one.out, one.at)
            )
        return choices

    def opt_out(self, recipient: str, topic: str, by: By, actor: str = "") -> bool:
        """Store that the recipient opts out of the topic. Return False if the recipient had opted out
        before."""
        condition, pair = "attribute_not_exists(opted_out_at)", (recipient, topic)
        written = self._choose(pair, "opted_out_at", condition, by, {}, actor=actor)
        if not written and by in ("one-click", "page"):
            # The recipient wishes so again, perhaps after an application has read the earlier opt-out, which
            # must not be ended then.
            repetition = Update({"repeated_at": number(self.now()), "repeated_by": string(by)})
            still_out = "attribute_exists(opted_out_at)"
            self._try(choice_key(*pair), repetition.expression, still_out, repetition.values)
        return written

    def opt_in(self, recipient: str, topic: str, by: By, ended_at: int | None = None, **texts: str) -> bool:
        """Store that the recipient opts in to the topic again. Return False if no opt-out was ended: the
        recipient had not opted out, or not at the time `ended_at` (epoch milliseconds). The recipient's own
        page only ends opt-outs that were made there. `texts`: the `actor`, if it is not the recipient, and
        the actor's `evidence` of the consent."""
        condition, sets = "attribute_exists(opted_out_at)", dict[str, Value]()
        if ended_at is not None:
            first = "opted_out_at = :ended_at AND attribute_not_exists(repeated_at)"
            condition, sets = f"repeated_at = :ended_at OR ({first})", {"ended_at": number(ended_at)}
        elif by == "preferences":
            condition = "attribute_exists(opted_out_at) AND #by = :by AND attribute_not_exists(repeated_at)"
        # The changes are a list and not a generator, so that all spellings of the recipient are written.
        forms = _forms((recipient, topic))
        changes = [self._choose(form, "opted_in_at", condition, by, sets, **texts) for form in forms]
        return any(changes)

    def _choose(
        self, pair: Pair, time: str, condition: str, by: By, sets: Mapping[str, Value], **texts: str
    ) -> bool:
        """Replace the recipient's choice if the condition is true. `time` is the attribute with its time."""
        now_ms = self.now()
        optional = {name: string(text) for name, text in texts.items() if text}
        change = Update({time: number(now_ms), "by": string(by), **sets, **optional}, removes=_CHOICE)
        written, item = self._try(choice_key(*pair), change.expression, condition, change.values)
        # If the item has the same values, this call wrote them: the SDK repeated the write because the
        # response to the first write was lost.
        return written or (item.get(time), item.get("by")) == (now_ms, by)

    def opted_out_since(self, topic: str, since: int) -> int:
        """Return the number of opt-outs from a topic that were made at `since` (epoch milliseconds) or later,
        and are still valid."""
        pages = self.client.get_paginator("query").paginate(
            TableName=self.table,
            IndexName=TOPICS,
            Select="COUNT",
            KeyConditionExpression="topic = :topic AND opted_out_at >= :since",
            ExpressionAttributeValues={":topic": string(topic), ":since": number(since)},
        )
        return sum(page["Count"] for page in pages)


_CHOICE = (
    *("opted_out_at", "opted_in_at", "actor", "evidence", "ended_at"),
    *("repeated_at", "repeated_by"),
)
"""Attributes of a choice, which the next choice removes unless it has them."""


def _forms(pair: Pair) -> list[Pair]:
    """Return a pair for each spelling of the recipient that the table may contain."""
    return [(form, pair[1]) for form in spellings(pair[0])]


def choice_key(recipient: str, topic: str) -> Sets:
    """Return the key of the item in the preferences for a recipient and a topic."""
    return {"recipient": string(recipient), "topic": string(topic)}


def _opt_outs(items: Iterable[Mapping[str, Any]]) -> dict[Pair, OptOut]:
    return {(opt_out.recipient, opt_out.topic): opt_out for opt_out in map(opt_out_of, items) if opt_out}


def opt_out_of(item: Mapping[str, Any]) -> OptOut | None:
    """Read an item of the preferences. Return None for an opt-in, and for the empty dict of a missing
    item."""
    return convert(dict(item), OptOut) if "opted_out_at" in item else None


_WHY = {
    "bounce": "it bounced",
    "complaint": "the recipient complained",
    "gone": "the provider reported that it no longer exists",
    "stop": "the recipient opted out",
    "operator": "an operator added it",
}


class Addressee(Struct, frozen=True):
    """A recipient of a message, together with the message's topic."""

    recipient: str
    """Recipient in the canonical form: see `Message.addressees`."""
    topic: str | None = None
    """Topic of the message; None for a message without a topic, from which recipients cannot opt out."""


class Blocked(Struct, frozen=True):
    """Reason why a recipient must not get a message."""

    code: str
    """Name of the reason, for programs."""
    sentence: str
    """Explanation of the reason, for people."""


_NOT_ALLOWED = Blocked(
    "not_allowed_here", "this stage sends only to recipients in its setting recipients.only"
)


class Choices(Struct, frozen=True):
    """Reads the suppression list and the preferences of one stage in one call."""

    suppressions: Suppressions
    preferences: Preferences

    def find(self, channel: str, addressees: Iterable[Addressee]) -> dict[Addressee, Blocked]:
        """Return the members of `addressees` who must not get the message, each with the reason. The
        preferences are only read for addressees with a topic. Raises UnprocessedKeys."""
        addressees = dict.fromkeys(addressees)
        items = batch_get(self.suppressions.client, self.keys(channel, addressees))
        return self.blocked(addressees, items)

    def keys(self, channel: str, addressees: Iterable[Addressee]) -> dict[str, list[Sets]]:
        """Return the keys of the items that decide about `addressees`, by table."""
        forms = {addressee: spellings(addressee.recipient) for addressee in addressees}
        # Duplicates are removed, because addressees with different topics may have the same recipient, and
        # DynamoDB refuses a request that contains a key twice.
        listed = [listed_key(form, channel) for form in dict.fromkeys(chain.from_iterable(forms.values()))]
        pairs = ((form, item.topic) for item in forms for form in forms[item] if item.topic is not None)
        choices = [choice_key(*pair) for pair in dict.fromkeys(pairs)]
        keys = {self.suppressions.table: listed, self.preferences.table: choices}
        return {table: keys_of_table for table, keys_of_table in keys.items() if keys_of_table}

    def blocked(
        self, addressees: Iterable[Addressee], items: Mapping[str, Sequence[Mapping[str, Any]]]
    ) -> dict[Addressee, Blocked]:
        """Return the members of `addressees` who must not get the message, each with the reason. `items` are
        the items of `keys`, by table."""
        listed = _listed(items.get(self.suppressions.table, ()))
        opt_outs = _opt_outs(items.get(self.preferences.table, ()))
        if not listed and not opt_outs:
            return {}
        return {item: blocked for item in addressees if (blocked := _blocked(item, listed, opt_outs))}


def _blocked(
    addressee: Addressee, listed: Mapping[str, Suppression], opt_outs: Mapping[Pair, OptOut]
) -> Blocked | None:
    forms = spellings(addressee.recipient)
    for form in forms:
        if form in listed:
            return Blocked("suppressed", _suppressed(listed[form]))
    for form in forms:
        if addressee.topic is not None and (form, addressee.topic) in opt_outs:
            return opted_out(opt_outs[form, addressee.topic])
    return None


def opted_out(opt_out: OptOut) -> Blocked:
    """Return the reason for not sending to a recipient who has opted out. The ledger stores this reason."""
    date = iso(opt_out.opted_out_at / 1000)[:10]
    sentence = f"opted out of {opt_out.topic!r} on {date}; the recipient can opt in again"
    return Blocked("opted_out", sentence)


def _suppressed(suppression: Suppression) -> str:
    date = iso(suppression.at / 1000)[:10]
    detail = f" ({suppression.detail})" if suppression.detail else ""
    end = "a START text ends it" if suppression.reason == "stop" else "an operator can remove it"
    return f"on the suppression list since {date}: {_WHY[suppression.reason]}{detail}; {end}"


class BatchChoices:
    """Recipients who must not get the messages of a batch: suppressed recipients, and recipients who have
    opted out of the topic of a message."""

    def __init__(self, choices: Choices, channel: str) -> None:
        self._choices = choices
        self._channel = channel
        self._asked: dict[Addressee, None] = {}
        self._checked: set[Addressee] = set()
        self._blocked: dict[Addressee, Blocked] = {}

    def keys(self, messages: Iterable["Message"]) -> dict[str, list[Sets]]:
        """Return the keys of the items that the caller must read for `take`, by table."""
        self._asked = dict.fromkeys(chain.from_iterable(map(_addressees, messages)))
        return self._choices.keys(self._channel, self._asked)

    def take(self, items: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """Store the items of `keys`, by table."""
        self._blocked = self._choices.blocked(self._asked, items)
        self._checked.update(self._asked)

    def blocked(self, message: "Message") -> dict[str, Blocked]:
        """Return the recipients of the message who must not get it, each with the reason. Recipients who were
        not read with the batch are read now. Raises UnprocessedKeys and botocore's errors."""
        addressees = _addressees(message)
        if not self._checked.issuperset(addressees):
            # `_checked` is updated after `_blocked`: another thread that finds an addressee in `_checked`
            # must also find the result.
            self._blocked.update(self._choices.find(self._channel, addressees))
            self._checked.update(addressees)
        return {item.recipient: self._blocked[item] for item in addressees if item in self._blocked}

    def mark(self, message: "Message", outcome: "Rejected") -> None:
        """Put the message's recipients on the suppression list, because the provider reported that they
        cannot be reached any more or have opted out."""
        now_ms = self._choices.suppressions.now()
        reason: Reason = "stop" if outcome.opted_out else "gone"
        for recipient in message.addressees:
            self._choices.suppressions.mark(
                Suppression(recipient, message.event_type, reason, now_ms, outcome.reason, message.id)
            )


def _addressees(message: "Message") -> list[Addressee]:
    return [Addressee(recipient, message.topic) for recipient in message.addressees]


class AllowedRecipients:
    """Recipients to whom a stage may send, if the setting `recipients` restricts them."""

    def __init__(self, channel: str, only: Iterable[str], redirect_to: str) -> None:
        """Create the object from the parts of the setting for one channel.

        `only` contains mail addresses and domains in lower case, `+` followed by the first digits of phone
        numbers, and `channel:recipient`. Domains are only compared in the channel mail, and `+` only with
        recipients that are numbers, because a device token may contain any text. `redirect_to` receives the
        messages to other recipients; if empty, messages are not redirected.
        """
        self._channel = channel
        self._exact = {*only, redirect_to} - {""}
        self._prefixes = tuple(entry for entry in only if entry.startswith("+"))
        self._redirect_to = redirect_to

    def redirect(self, reached: Iterable[str]) -> str | None:
        """Return `redirect_to` if the stage may not send to at least one of the recipients `reached`. The
        message is then sent to `redirect_to` instead of all its recipients. Otherwise, or if `redirect_to` is
        empty, return None."""
        return (self._redirect_to or None) if self.outside(reached) else None

    def outside(self, reached: Iterable[str]) -> dict[str, Blocked]:
        """Return the members of `reached`, a message's recipients, to whom the stage may not send, each with
        the reason. If `reached` is empty, as for a message to a topic, the recipients are unknown; the result
        then contains "" in their place."""
        recipients = tuple(reached) or ("",)
        return {recipient: _NOT_ALLOWED for recipient in recipients if not self._allows(recipient)}

    def _allows(self, recipient: str) -> bool:
        if not {recipient, f"{self._channel}:{recipient}"}.isdisjoint(self._exact):
            return True
        if self._channel == "mail":
            return recipient.rpartition("@")[2] in self._exact
        return recipient.startswith(self._prefixes) and recipient[1:].isdecimal()
