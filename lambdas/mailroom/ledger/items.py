"""The ledger's items: what their attributes look like, how one is written, and what a claim of one may find.

Every delivery of a message starts with one claim, one conditional write:

worker A   claim ─────── submit ──✗ dies            lease = function time-out + 60 s
queue            visibility time-out ────────────────────▶ redelivers
worker B                                lease over ▶ claim ─ look for evidence ─ complete, or submit
"""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, structs

from mailroom.aws.dynamo import (
    ONCE,
    Change,
    ConditionFailed,
    Sets,
    Value,
    insert,
    number,
    plain,
    string,
    strings,
    try_update,
    update,
)
from mailroom.clock import Clock, epoch, iso, milliseconds
from mailroom.message.message import Key
from mailroom.message.outcome import Evidence, Facts, NotFound, Status, before

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

MAX_HISTORY = 50
"""Entries in `history`: the 20 attempts of a fax and what its provider says of them; about 2.5 KB."""
MAX_ERROR = 500
"""Characters of an error's message: an item stays near one write unit."""
MAX_KEPT = 2048
"""Characters of an attribute of an item that is refused: it may be anything, up to 400 KB."""

_APPEND = {"history": "list_append(if_not_exists({name}, :no_history), {value})"}
_NO_HISTORY: Value = {"L": []}
_NO_CALLBACKS: Value = {"M": {}}
CLEARED_AT_END = ("trouble", "dead_lettered_at")
"""What goes as soon as a message has its outcome."""
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
_ROOM = number(MAX_HISTORY)


class LedgerItems:
    """Writes items of one table. `ttl` is how long one lives after its last change, in seconds."""

    def __init__(self, client: "DynamoDBClient", table: str, ttl: float, clock: Clock = time.time) -> None:
        self._client = client
        self._table = table
        self._ttl = ttl
        self._clock = clock

    def write(
        self,
        key: Key,
        change: Change,
        entry: Status | None = None,
        code: str | None = None,
        returns: Literal["NONE", "ALL_OLD", "ALL_NEW"] = "NONE",
    ) -> dict[str, Any]:
        """One update, with an entry in the bounded history where `entry` names one. Raises ConditionFailed.

        A full history is no reason to lose the fact itself: then it is written without its entry.
        """
        now = self._clock()
        change.sets = {**self._dates(now), **change.sets}
        condition, values = change.condition, change.values
        if entry is not None:
            _note(change, entry, code, now)
        try:
            return update(self._client, self._table, where(key), change, returns)
        except ConditionFailed as failed:
            if entry is None or len(failed.item.get("history", ())) < MAX_HISTORY:
                raise
            del change.sets["history"]
            change.condition, change.values = condition, values
            return update(self._client, self._table, where(key), change, returns)

    def write_new(self, changes: Sequence[tuple[Key, Change]]) -> list[str | None]:
        """Make each change of nothing, in few calls. A code where that is not certain: see `insert`."""
        dates = self._dates(self._clock())
        items = [{**where(key), **dates, **change.as_new_item()} for key, change in changes]
        return insert(self._client, self._table, items)

    def _dates(self, now: float) -> Sets:
        """What every change says of its time, unless it says something else itself."""
        return {"updatedAt": string(iso(now)), "ttl": self.ttl_after(now)}

    def try_write(
        self, key: Key, change: Change, entry: Status | None = None, code: str | None = None
    ) -> bool:
        """Write as `write` does; False where the condition did not hold."""
        try:
            self.write(key, change, entry, code)
        except ConditionFailed:
            return False
        return True

    def note_callback(self, key: Key, name: str, result: Sets) -> None:
        """Keep what became of a callback, by its name; nothing where nobody asked for any.

        It is no change of the message's: `updatedAt` and `ttl` stay.
        """
        there, names = "attribute_exists(#map)", {"#map": "callbacks", "#entry": name}
        self.change(key, Change({"entry": {"M": result}}, there, names=names, within="#map"))

    def advance(
        self,
        key: Key,
        recipient: str,
        status: Status | None,
        facts: Facts,
        error: str = "",
        token: str | None = None,
    ) -> dict[str, Any] | None:
        """Move one recipient's entry on, as a whole item moves: its status forward, with the `error` that
        goes with it ("": none), or not at all; `facts` where they are new. The item after that; None where it
        has no such entry. With `token`, only as the holder of that claim."""
        names, entry = {"#map": "recipients", "#entry": recipient}, "#map.#entry"
        there, own = f"attribute_exists({entry})", Sets()
        if token is not None:
            there, own = f"{there} AND claim_token = :own", {":own": string(token)}
        news, once = facts_of(facts), dict.fromkeys(facts, ONCE)
        if status is not None:
            earlier = earlier_than(status)
            free = f"attribute_not_exists({entry}.#status) OR {entry}.#status IN ({', '.join(earlier)})"
            sets = {**news, "status": string(status)}
            if error:
                sets["error"] = string(error[:MAX_ERROR])
            gone = () if error else ("error",)
            moves = Change(
                sets, f"{there} AND ({free})", own | earlier, once, gone, names=names, within=entry
            )
            moved, item = self.change(key, moves, "ALL_NEW")
            if moved or not facts:
                return item if recipient in item.get("recipients", {}) else None
        if not facts:
            return None
        lacking = " OR ".join(f"attribute_not_exists({entry}.#{fact})" for fact in facts)
        change = Change(news, f"{there} AND ({lacking})", own, once, names=names, within=entry)
        _, item = self.change(key, change, "ALL_NEW")
        return item if recipient in item.get("recipients", {}) else None

    def change(
        self, key: Key, change: Change, returns: Literal["NONE", "ALL_NEW"] = "NONE"
    ) -> tuple[bool, dict[str, Any]]:
        """Whether the change was made, and what `returns` asks for, or the item that stood in its way."""
        return try_update(self._client, self._table, where(key), change, returns)

    def ids_on_line(self, line: str, since: float) -> set[str]:
        """Every id in `provider_ids` of the index's items for this line, submitted since then (epoch ms)."""
        pages = self._client.get_paginator("query").paginate(
            TableName=self._table,
            IndexName=LINES,
            KeyConditionExpression="#line = :line AND #submitted >= :since",
            ExpressionAttributeNames={"#line": "line", "#submitted": "submittedAt"},
            ExpressionAttributeValues={":line": string(line), ":since": number(since)},
        )
        return {
            id_ for page in pages for item in page["Items"] for id_ in plain(item).get("provider_ids", ())
        }

    def ended(self, key: Key, status: Status) -> Sets:
        """What gives a message its outcome now; failures enter the sparse index by day and channel."""
        now = self._clock()
        sets = {"status": string(status), "completedAt": number(milliseconds(now))}
        if status == "failed":
            sets["failed_on"] = string(f"{iso(now)[:10]}#{key.event_type[:40]}")
        return sets

    def outliving(self, due: float) -> Sets:
        """Keeps the item of a message that was taken back until its schedule has fired, at `due` (epoch
        seconds). If the ledger forgot the message earlier, it would be sent: its item may still be in the
        mailbox, and nothing deletes the schedule."""
        return {"ttl": self.ttl_after(max(due, self._clock()))}

    def ttl_after(self, moment: float) -> Value:
        """The `ttl` of an item that is needed until `moment`, and for as long as all are after that."""
        return number(moment + self._ttl)


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


def ids_of(provider_id: str) -> Sets:
    """An id for the set of all that the provider ever gave to a message: see `ids_on_line`."""
    return {"provider_ids": {"SS": [provider_id]}}


def error_of(code: str, message: str, field: str = "") -> Sets:
    """What went wrong, for programs and for people; `field` is the attribute at fault ("": none is)."""
    said = {"code": string(code), "message": string(message[:MAX_ERROR])}
    return {"error": {"M": {**said, "field": string(field)} if field else said}}


def _short(value: object) -> str | None:
    return value if isinstance(value, str) and len(value) <= MAX_KEPT else None


def _note(change: Change, status: Status, code: str | None, now: float) -> None:
    """Add an entry to the history, on condition that there is room for it."""
    noted = {"at": number(milliseconds(now)), "status": string(status)}
    if code is not None:
        noted["code"] = string(code)
    change.sets["history"] = {"L": [{"M": noted}]}
    change.condition = f"({change.condition}) AND (attribute_not_exists(history) OR size(history) < :room)"
    change.values = {**change.values, ":no_history": _NO_HISTORY, ":room": _ROOM}
    change.forms = {**change.forms, **_APPEND}


class Claimed(Struct, frozen=True):
    """The message is this worker's until its lease ends; `token` goes with every further write.

    `since` is when an earlier worker claimed it and was not heard of again (epoch milliseconds; the first
    of several): the outcome of what was done since is unknown. None: this attempt is certainly not submitted.
    `accounts` are those at which something may have been done since then: what one of them does not know,
    another may. `provider_id` is the checkpoint of an attempt that is under way since `submitted_at`: resume
    it, never submit. `provider` has it. `redirected_to` gets the message in place of its recipients; None:
    they get it. `account` is the one that this claim names: nothing may be submitted at another. `earlier`:
    the tries since `since` without this claim's own, as the ledger keeps them. `redriven`: it was a dead
    letter, and a person has put it back on its way.
    """

    key: Key
    token: str
    since: int | None
    provider_id: str | None
    submitted_at: int | None = None
    provider: str | None = None
    accounts: frozenset[str] = frozenset()
    redirected_to: str | None = None
    account: str | None = None
    earlier: tuple[str, ...] = ()
    redriven: bool = False

    def after(self, evidence: Evidence) -> "Claimed":
        """The claim, once it is known what became of the earlier tries."""
        return structs.replace(self, since=None) if isinstance(evidence, NotFound) else self

    @property
    def in_doubt(self) -> list[int]:
        """When each try began that may have submitted the message (epoch milliseconds), oldest first; []: it
        is known that none did."""
        if self.since is None:
            return []
        began = [each.split(" ", 1) for each in self.earlier]
        return sorted(int(at) for at, account in began if account != NOWHERE) or [self.since]


class Completed(Struct, frozen=True):
    """The message has its outcome: drop the record."""


class Superseded(Struct, frozen=True):
    """A later attempt exists: this record is a stale duplicate; drop it."""


class InProgress(Struct, frozen=True):
    """Someone else is on it for `seconds` more at most: back to the queue with that visibility."""

    seconds: float


class OutOfSequence(Struct, frozen=True):
    """No attempt that has ended leads up to this one: its number is made up, or the item was erased."""


UNKNOWN_ACCOUNT = ""
"""Among `accounts`: nobody can be asked, or a version of before did not write it down."""
NOWHERE = "-"
"""The account of a try whose account could not be told. Such a try submits nothing."""


def tried(now_ms: int, account: str) -> str:
    """A try that begins now at an account, as the ledger keeps it in `unsettled_tries`."""
    return f"{now_ms} {account}"


def accounts_of(item: Mapping[str, Any], since: int | None) -> frozenset[str]:
    """Where the tries since then were made, told from the item (in plain Python)."""
    if since is None:
        return frozenset()
    tries = [each.split(" ", 1) for each in item.get("unsettled_tries", ())]
    accounts = {account for _, account in tries if account != NOWHERE}
    if not {str(since), str(item.get("startedAt", since))} <= {began for began, _ in tries}:
        accounts.add(UNKNOWN_ACCOUNT)
    return frozenset(accounts)


Claim = Claimed | Completed | Superseded | InProgress | OutOfSequence


def why_not_claimed(item: Mapping[str, Any], attempt: int, now_ms: int, lease_ms: int) -> Claim:
    """Why a claim's condition failed, told from the item that DynamoDB sent along (in plain Python)."""
    if "completedAt" in item:
        return Completed()
    if int(item.get("attempts", 0)) >= attempt:
        return Superseded()
    if "startedAt" not in item:
        return OutOfSequence()
    return InProgress(max(0, int(item["startedAt"]) + lease_ms - now_ms) / 1000)


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
