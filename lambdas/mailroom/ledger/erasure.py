"""Erasure of a person's data from the ledger. Ledger items of the person's messages are emptied, but never
deleted.

A copy of a message may be in a queue for weeks. The key, the status and `completedAt` of the ledger item
prevent this copy from being sent. So these attributes stay until the item's `ttl`, and the attributes about
the person are removed.
"""

from collections.abc import Mapping
from typing import Any

from mailroom.aws.dynamo_updates import ConditionFailed, Update, update
from mailroom.aws.dynamo_values import Sets, Value, number, string
from mailroom.clock import milliseconds
from mailroom.ledger.items import ERASED_AT, FAILURE_KEYS, MessageKey, error_of, where
from mailroom.ledger.table import LedgerTable

ERASED = "erased"
"""Text that replaces the text of an item's `error`, because that text may name the person."""
ERASED_UNSENT = "the recipient was erased before the message was sent"
KEPT = frozenset(
    (
        *("id", "event_type", "status", "attempts", "generation", "claim_token", "provider", "callbacks"),
        *("startedAt", "submittedAt", "completedAt", "updatedAt", "scheduledFor", "ttl"),
        *("sentAt", "deliveredAt", "delayedAt", "undeliveredAt", "bouncedAt", "complainedAt", *FAILURE_KEYS),
        *("putAt", "delay_type", "bounce_type", "bounce_subtype", "complaint_type", "complaint_subtype"),
        *("error_code", "segments", "encoding", "error", "history", ERASED_AT, "erased_by"),
    )
)
"""Attributes that an emptied item keeps. All other attributes are removed, including attributes that are
added to this program later."""
_HISTORY_FIELDS = ("at", "status", "code")


class Erasure(LedgerTable):
    """Ledger writes of an erasure: first `cancel` if the message waits, then `empty`."""

    def empty(self, key: MessageKey, item: Mapping[str, Any], by: str = "") -> bool:
        """Remove the attributes about the person from the item of a message that has ended. `item` is the
        item in plain Python.

        `by` is the operator's name, or empty. Returns False if the item has changed since it was read, or if
        its message has not ended.

        The status does not change, so no callback is sent. `updatedAt` and `ttl` do not change either.
        `attempts` is raised by one, so that a later event about the last attempt is ignored, and cannot add
        data about the person again.
        """
        erased = ERASED_AT in item
        sets: Sets = {
            ERASED_AT: number(item[ERASED_AT] if erased else milliseconds(self._clock())),
            "attempts": number(int(item.get("attempts", 0)) + (0 if erased else 1)),
        }
        if by and not erased:
            sets["erased_by"] = string(by)
        if "error" in item:
            sets |= error_of(str(item["error"].get("code", "")), ERASED)
        if "history" in item:
            sets["history"] = {"L": [_without_person(entry) for entry in item["history"]]}
        emptied = Update(sets, removes=sorted(name for name in item if name not in KEPT))
        condition = "attribute_exists(completedAt) AND updatedAt = :seen"
        values = {":seen": string(item["updatedAt"]), **emptied.values}
        try:
            update(self._client, self._table, where(key), emptied.expression, condition, values)
        except ConditionFailed:
            return False
        return True


def _without_person(entry: Mapping[str, Any]) -> Value:
    fields: Sets = {}
    for name in _HISTORY_FIELDS:
        if name in entry:
            value = entry[name]
            fields[name] = string(value) if isinstance(value, str) else number(value)
    return {"M": fields}
