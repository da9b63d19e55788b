"""One conditional write of the ledger: each dates its item, and most add to its history."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from mailroom.aws.dynamo_batches import insert
from mailroom.aws.dynamo_updates import ConditionFailed, also, assigned_once, try_update, update, values_of
from mailroom.aws.dynamo_values import Sets, Value, number, plain, string
from mailroom.clock import Clock, iso, milliseconds
from mailroom.ledger.items import LINES, MAX_ERROR, MAX_HISTORY, earlier_than, facts_of, where
from mailroom.message.message import Key
from mailroom.message.outcome import FAILED, Facts, Status

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

_DATED = "SET updatedAt = :updatedAt, #ttl = :ttl"
_NOTED = ", history = list_append(if_not_exists(history, :no_history), :entry)"
_ROOM = "attribute_not_exists(history) OR size(history) < :room"
_OF_HISTORY: Sets = {":no_history": {"L": []}, ":room": number(MAX_HISTORY)}


class LedgerTable:
    """Writes items of one table. `ttl` is how long one lives after its last change, in seconds."""

    def __init__(self, client: "DynamoDBClient", table: str, ttl: float, clock: Clock = time.time) -> None:
        self._client = client
        self._table = table
        self._ttl = ttl
        self._clock = clock

    def write(
        self,
        key: Key,
        expression: str,
        condition: str,
        values: Sets,
        *,
        entry: Status | None = None,
        code: str | None = None,
        returns: Literal["NONE", "ALL_OLD", "ALL_NEW"] = "NONE",
    ) -> dict[str, Any]:
        """One update, which also dates the item; with an `entry` in the bounded history where that names a
        status. Raises ConditionFailed.

        A full history is no reason to lose the fact itself: then it is written without its entry.
        """
        now = self._clock()
        said = expression.strip()
        # An expression has one SET clause, and this one comes first.
        said = f", {said.removeprefix('SET ')}" if said.startswith("SET ") else f" {said}"
        dated = {":updatedAt": string(iso(now)), ":ttl": self.ttl_after(now), **values}
        if entry is None:
            return self._update(key, f"{_DATED}{said}", condition, dated, returns)
        noted = {**dated, **_OF_HISTORY, ":entry": {"L": [_entry(now, entry, code)]}}
        try:
            return self._update(
                key, f"{_DATED}{_NOTED}{said}", f"({condition}) AND ({_ROOM})", noted, returns
            )
        except ConditionFailed as failed:
            if len(failed.item.get("history", ())) < MAX_HISTORY:
                raise
            return self._update(key, f"{_DATED}{said}", condition, dated, returns)

    def _update(
        self,
        key: Key,
        expression: str,
        condition: str,
        values: Sets,
        returns: Literal["NONE", "ALL_OLD", "ALL_NEW"],
    ) -> dict[str, Any]:
        return update(self._client, self._table, where(key), expression, condition, values, returns=returns)

    def try_write(
        self,
        key: Key,
        expression: str,
        condition: str,
        values: Sets,
        *,
        entry: Status | None = None,
        code: str | None = None,
    ) -> bool:
        """Write as `write` does; False where the condition did not hold."""
        try:
            self.write(key, expression, condition, values, entry=entry, code=code)
        except ConditionFailed:
            return False
        return True

    def write_new(self, items: Sequence[tuple[Key, Sets]]) -> list[str | None]:
        """Put items that are new, in few calls. A code where that is not certain: see `insert`."""
        now = self._clock()
        dates = {"updatedAt": string(iso(now)), "ttl": self.ttl_after(now)}
        new = [{**where(key), **dates, **sets} for key, sets in items]
        return insert(self._client, self._table, new)

    def note_callback(self, key: Key, name: str, result: Sets) -> None:
        """Keep what became of a callback, by its name; nothing where nobody asked for any.

        It is no change of the message's: `updatedAt` and `ttl` stay.
        """
        self.change(
            key,
            "SET callbacks.#name = :result",
            "attribute_exists(callbacks)",
            {":result": {"M": result}},
            names={"#name": name},
        )

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
        names, own = {"#recipient": recipient}, Sets()
        there = "attribute_exists(recipients.#recipient)"
        if token is not None:
            there, own = f"{there} AND claim_token = :own", {":own": string(token)}
        news = facts_of(facts)
        once = assigned_once(news, within="recipients.#recipient.")
        if status is not None:
            earlier = earlier_than(status)
            of_error: Sets = {":error": string(error[:MAX_ERROR])} if error else {}
            told = (
                ", recipients.#recipient.#error = :error" if error else " REMOVE recipients.#recipient.#error"
            )
            moved, item = self.change(
                key,
                f"SET recipients.#recipient.#status = :status{also(once)}{told}",
                f"""{there} AND (attribute_not_exists(recipients.#recipient.#status)
                    OR recipients.#recipient.#status IN ({", ".join(earlier)}))""",
                {":status": string(status), **values_of(news), **of_error, **earlier, **own},
                names=names,
                returns="ALL_NEW",
            )
            if moved or not facts:
                return item if recipient in item.get("recipients", {}) else None
        if not facts:
            return None
        lacking = " OR ".join(f"attribute_not_exists(recipients.#recipient.#{fact})" for fact in facts)
        _, item = self.change(
            key,
            f"SET {once}",
            f"{there} AND ({lacking})",
            {**values_of(news), **own},
            names=names,
            returns="ALL_NEW",
        )
        return item if recipient in item.get("recipients", {}) else None

    def change(
        self,
        key: Key,
        expression: str,
        condition: str,
        values: Sets,
        *,
        names: dict[str, str] | None = None,
        returns: Literal["NONE", "ALL_NEW"] = "NONE",
    ) -> tuple[bool, dict[str, Any]]:
        """An update that leaves the dates as they are. Whether it was made, and what `returns` asks for, or
        the item that stood in its way."""
        return try_update(
            self._client, self._table, where(key), expression, condition, values, names=names, returns=returns
        )

    def ids_on_line(self, line: str, since: float) -> set[str]:
        """Every id in `provider_ids` of the index's items for this line, submitted since then (epoch ms)."""
        pages = self._client.get_paginator("query").paginate(
            TableName=self._table,
            IndexName=LINES,
            KeyConditionExpression="#line = :line AND submittedAt >= :since",
            ExpressionAttributeNames={"#line": "line"},
            ExpressionAttributeValues={":line": string(line), ":since": number(since)},
        )
        return {
            id_ for page in pages for item in page["Items"] for id_ in plain(item).get("provider_ids", ())
        }

    def ended(self, key: Key, status: Status) -> Sets:
        """The values `:status` and `:now` of a message that gets its outcome now. What its producer did not
        wish for also enters the sparse index by day and channel, as `:failed_on`."""
        now = self._clock()
        values = {":status": string(status), ":now": number(milliseconds(now))}
        if status in FAILED:
            values[":failed_on"] = string(f"{iso(now)[:10]}#{key.event_type[:40]}")
        return values

    def first_seen(self, put_at: float | None = None) -> Sets:
        """When a message was put, for the write that may make its item; a later one leaves it as it is.
        `put_at` (epoch seconds) None: nobody noted it, so it is now. No time to come: that is when a message
        counts as delayed from."""
        now = self._clock()
        return {"putAt": number(milliseconds(now if put_at is None else min(put_at, now)))}

    def ttl_past(self, due: float) -> Value:
        """The `ttl` of a message that was taken back, until its schedule has fired, at `due` (epoch seconds).
        If the ledger forgot the message earlier, it would be sent: its item may still be in the mailbox, and
        nothing deletes the schedule."""
        return self.ttl_after(max(due, self._clock()))

    def ttl_after(self, moment: float) -> Value:
        """The `ttl` of an item that is needed until `moment`, and for as long as all are after that."""
        return number(moment + self._ttl)


def _entry(now: float, status: Status, code: str | None) -> Value:
    noted = {"at": number(milliseconds(now)), "status": string(status)}
    if code is not None:
        noted["code"] = string(code)
    return {"M": noted}
