"""What erasing a person does to the ledger: a message of theirs is never deleted there, it is emptied.

A copy of its queue message may lie somewhere for weeks. What keeps such a copy from being sent is the item's
key, its status and `completedAt`; so these stay until the item's own `ttl`, and what tells of a person goes.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from mailroom.aws.dynamo_updates import assigned, assigned_once, values_of
from mailroom.aws.dynamo_values import Sets, Value, number, string
from mailroom.clock import milliseconds
from mailroom.ledger.items import ERASED_AT, error_of
from mailroom.ledger.table import LedgerTable
from mailroom.message.message import Key

ERASED = "erased"
"""Replaces a text that named the person."""
WHY = "its recipient was erased before it was sent"
KEPT = frozenset(
    (
        *("id", "event_type", "status", "attempts", "generation", "claim_token", "provider", "callbacks"),
        *("startedAt", "submittedAt", "completedAt", "updatedAt", "scheduledFor", "ttl"),
        *("sentAt", "deliveredAt", "delayedAt", "undeliveredAt", "bouncedAt", "complainedAt", "failed_on"),
        *("putAt", "delay_type", "bounce_type", "bounce_subtype", "complaint_type", "complaint_subtype"),
        *("error_code", "segments", "encoding", "error", "history", ERASED_AT, "erased_by"),
    )
)
"""What an emptied item may have. What is not named here goes, also what nobody has thought of yet."""
_OF_HISTORY = ("at", "status", "code")


class Erasure(LedgerTable):
    """The two verbs. `ttl` is how long an item lives after its last change, in seconds."""

    def withdraw(self, key: Key, due: float = 0) -> bool:
        """Cancel what was not sent, wherever its copies wait, also before there is an item: who comes to
        claim it finds it completed. Who asked for callbacks is told, where the ledger knows of it. `due`
        (epoch seconds; 0: at once) is its `send_at`.

        False where it cannot be: a worker holds it or died with it, a provider has it, or it is over.
        """
        first = self.first_seen()
        return self.try_write(
            key,
            f"""SET #status = :status, completedAt = :now, #error = :error, {assigned_once(first)}
            REMOVE trouble, dead_lettered_at""",
            """attribute_not_exists(startedAt) AND attribute_not_exists(unsettled_tries)
            AND attribute_not_exists(completedAt) AND attribute_not_exists(provider_id)""",
            {
                **self.ended(key, "cancelled"),
                ":ttl": self.ttl_past(due),
                **values_of({**error_of("cancelled", WHY), **first}),
            },
            entry="cancelled",
        )

    def empty(self, key: Key, item: Mapping[str, Any], by: str = "") -> bool:
        """Take what tells of the person out of what is over; `item` is what stands there, in plain Python,
        and `by` says who erases ("": nobody can tell). False where it has changed since, or is not over.

        The status stays, so it has no consequence; `updatedAt` and `ttl` stay as well. One attempt more
        counts as ended, so that what its provider tells of the last one is outdated and brings nothing back.
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
            sets["history"] = {"L": [_bare(each) for each in item["history"]]}
        gone = sorted(name for name in item if name not in KEPT)
        emptied, _ = self.change(
            key,
            f"SET {assigned(sets)} {_removing(gone)}",
            "attribute_exists(completedAt) AND updatedAt = :seen",
            {":seen": string(item["updatedAt"]), **values_of(sets)},
        )
        return emptied


def _removing(names: Sequence[str]) -> str:
    return "REMOVE " + ", ".join(f"#{name}" for name in names) if names else ""


def _bare(entry: Mapping[str, Any]) -> Value:
    kept: Sets = {}
    for name in _OF_HISTORY:
        if name in entry:
            value = entry[name]
            kept[name] = string(value) if isinstance(value, str) else number(value)
    return {"M": kept}
