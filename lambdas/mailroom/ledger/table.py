"""Table of the ledger: the method that writes all changes of an item, and `cancel`, which producers also
call.

Producers import this module, so boto3 is the only package that it may import.
"""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from mailroom.aws.dynamo_updates import (
    MAX_UPDATES,
    Conditional,
    ConditionFailed,
    Returns,
    Update,
    update,
    update_together,
)
from mailroom.aws.dynamo_values import Sets, Value, number, string
from mailroom.clock import Clock, iso, milliseconds
from mailroom.ledger.items import FAILURE_KEYS, MAX_HISTORY, MessageKey, addressing_of, error_of, where

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

    from mailroom.message.outcome import Status

NO_OUTCOME = "attribute_not_exists(completedAt)"
"""Condition: the message has not ended."""
UNCLAIMED = f"attribute_not_exists(startedAt) AND attribute_not_exists(claim_token) AND {NO_OUTCOME}"
"""Condition: the message has not ended, and no worker has ever claimed it. A claim's token stays after the
claim's release."""
UNSENT = f"""attribute_not_exists(startedAt) AND attribute_not_exists(unsettled_tries)
    AND attribute_not_exists(provider_id) AND {NO_OUTCOME}"""
"""Condition: the message has not ended, and was certainly not sent. It is not claimed, no try has an unknown
outcome, and no provider has accepted it. A worker may have claimed and released it."""
FIRST = "(attribute_not_exists(attempts) OR attempts = :ended)"
"""Condition for a first attempt: no attempt has ended yet, or the message is not in the ledger yet."""
NEXT = "attempts = :ended"
"""Condition for a later attempt: the attempt before it has ended, and no later attempt has."""
STANDS = "#wait.version = :version"
"""Condition: the message still has the mark with the caller's version, because no later call of `Waits.hold`
has replaced it. Each call writes a new version."""
WAITS = f"#status = :waits AND {STANDS}"
"""Condition: the message waits, and its mark has the caller's version. A message waits only while its status
is `scheduled`."""
_ROOM = " AND (attribute_not_exists(history) OR size(history) < :room)"
"""Further condition: `history` has fewer entries than its maximum."""
_LIMIT = {":room": number(MAX_HISTORY)}
"""Values of _ROOM."""
NOT_DEAD = ("dead_lettered_at", *FAILURE_KEYS)
"""Attributes of a dead letter, which are removed when the message is claimed."""
TRY_NOTES = ("trouble", *NOT_DEAD)
"""Attributes about tries, and about an earlier failure, which are removed when the message ends."""
TAKEN_BACK = "it was cancelled before it was sent"


class Write(NamedTuple):
    """Arguments of `LedgerTable.write`."""

    key: MessageKey
    changes: Update
    condition: str
    values: Sets | None = None
    entry: "Status | None" = None
    code: str | None = None


class LedgerTable:
    """Writes items of the ledger's table. An item expires `ttl` seconds after its last change."""

    def __init__(self, client: "DynamoDBClient", table: str, ttl: float, clock: Clock = time.time) -> None:
        self._client = client
        self._table = table
        self._ttl = ttl
        self._clock = clock

    def write(
        self,
        key: MessageKey,
        changes: Update,
        condition: str,
        values: Sets | None = None,
        *,
        entry: "Status | None" = None,
        code: str | None = None,
        returns: Returns = "NONE",
    ) -> dict[str, Any]:
        """Write changes of an item, together with `updatedAt` and `ttl`. The status `entry` and its `code`
        are added to the history, unless the history is full.

        `condition` consists of parts that are joined by AND, and `values` are the values of its placeholders.
        Returns the item before or after the write, as `returns` requires. Raises ConditionFailed.
        """
        planned = self._planned(key, changes, condition, values, entry, code)
        try:
            return update(self._client, self._table, *planned, returns=returns)
        except ConditionFailed as failed:
            if entry is None or len(failed.item.get("history", ())) < MAX_HISTORY:
                raise
        # The history is full. The change itself must not be lost, so it is written without an entry.
        return self.write(key, changes, condition, values, returns=returns)

    def write_together(self, writes: Sequence[Write]) -> list[bool]:
        """Make writes of different items, in one call for every 100 of them. If such a call cannot make all
        of its writes, each is made in a separate call. Returns for each write whether its condition was true.
        Raises botocore's errors; then some of the writes may be made."""
        results: list[bool] = []
        for first in range(0, len(writes), MAX_UPDATES):
            batch = writes[first : first + MAX_UPDATES]
            if update_together(self._client, self._table, [self._planned(*write) for write in batch]):
                results += [True] * len(batch)
            else:
                results += map(self._try, batch)
        return results

    def _try(self, write: Write) -> bool:
        key, changes, condition, values, entry, code = write
        try:
            self.write(key, changes, condition, values, entry=entry, code=code)
        except ConditionFailed:
            return False
        return True

    def _planned(
        self,
        key: MessageKey,
        changes: Update,
        condition: str,
        values: Sets | None,
        entry: "Status | None",
        code: str | None,
    ) -> Conditional:
        """Return the update of a write, with the item's dates and the entry of its history."""
        moment, appends, room, limit = self._clock(), changes.appends, "", Sets()
        if entry is not None:
            appends = {"history": {"L": [_entry(moment, entry, code)]}}
            room, limit = _ROOM, _LIMIT
        sets = {**self.dates(moment), **changes.sets}
        whole = Update(sets, changes.once, appends, changes.adds, changes.removes)
        all_values = {**whole.values, **(values or {}), **limit}
        return Conditional(where(key), whole.expression, condition + room, all_values)

    def cancel(
        self,
        key: MessageKey,
        message: str = TAKEN_BACK,
        *,
        code: str = "cancelled",
        since: float | None = None,
        version: str = "",
        to: str | list[str] | None = None,
        callback_url: str | None = None,
    ) -> bool:
        """Cancel a message that was certainly not sent, even if it is not in the ledger yet. Workers then
        drop its queue records.

        Either this write or a worker's claim succeeds, never both. The attempt counts as ended, so that
        copies in queues are dropped even if an operator resends the message later.

        `message` is the reason in a sentence for people. `to` and `callback_url` are stored in the item. If
        `since` (epoch seconds) is given, the message is cancelled only if it is scheduled for that time or
        later and its wait has the version `version`.

        Returns False if the message has ended or may have been sent, or if `since` is given and the message
        does not wait as described.
        """
        addressing = addressing_of(to, callback_url)
        condition, values = UNSENT, Sets()
        if since is not None:
            condition = f"{UNSENT} AND scheduledFor >= :since AND {WAITS}"
            values = {":since": string(iso(since)), **waits_as(version)}
        cancelled = self.cancelled(message, code, addressing)
        return self._try(Write(key, cancelled, condition, values, "cancelled"))

    def cancelled(self, message: str, code: str, description: Sets, put_at: float | None = None) -> Update:
        """Return the changes that cancel a message. `description` has further attributes of the message. The
        other arguments are those of `cancel` and of `first_values`."""
        outcome = {"status": string("cancelled"), "completedAt": number(milliseconds(self._clock()))}
        return Update(
            sets={**outcome, **error_of(code, message), **description},
            once=self.first_values(description, put_at),
            adds={"attempts": number(1)},
            removes=TRY_NOTES,
        )

    def first_values(self, description: Sets, put_at: float | None = None) -> Sets:
        """Return the attributes that only the first write of an item sets.

        `put_at` is the time in epoch seconds when the message was put into the mailbox. If it is None or in
        the future, the present time is used, because the message's delay is counted from this time.
        """
        moment = self._clock()
        first: Sets = {"putAt": number(milliseconds(moment if put_at is None else min(put_at, moment)))}
        if "callback_url" in description:
            first["callbacks"] = {"M": {}}  # DynamoDB adds an entry only to a map that exists
        return first

    def dates(self, moment: float) -> Sets:
        """Return `updatedAt` and `ttl` of an item that changes at `moment` (epoch seconds)."""
        return {"updatedAt": string(iso(moment)), "ttl": self.ttl_after(moment)}

    def ttl_after(self, moment: float) -> Value:
        """Return the `ttl` of an item that is needed until `moment` (epoch seconds)."""
        return number(moment + self._ttl)


def waits_as(version: str) -> Sets:
    """Return the values of WAITS."""
    return {":waits": string("scheduled"), ":version": string(version)}


def _entry(moment: float, status: "Status", code: str | None) -> Value:
    entry = {"at": number(milliseconds(moment)), "status": string(status)}
    if code is not None:
        entry["code"] = string(code)
    return {"M": entry}
