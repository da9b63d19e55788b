"""Taking a message back: one conditional write, and it and a sender's claim exclude each other.

Producers use this as well, so it needs boto3 and no more.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mailroom.aws.dynamo_updates import try_update
from mailroom.aws.dynamo_values import Sets, number, string, strings
from mailroom.clock import Clock, iso, milliseconds
from mailroom.ledger import UNCLAIMED

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

TAKEN_BACK = "it was taken back before its send_at"


@dataclass(frozen=True)
class Withdrawals:
    """Takes messages of one ledger, `table`, back. An item lives for `ttl` seconds after its last change."""

    client: "DynamoDBClient"
    table: str
    ttl: float
    clock: Clock

    def withdraw(
        self,
        id_: str,
        event_type: str,
        message: str = TAKEN_BACK,
        *,
        to: str | list[str] | None = None,
        callback_url: str | None = None,
        due: float = 0,
    ) -> bool:
        """Cancel a message that no worker has claimed, even if the ledger has no item yet. A sender that
        receives the message drops it. `message` says why; `to`, `callback_url` and `due` (epoch seconds) are
        the message's. False if a worker has claimed it, or if it has ended.

        Where `due` is later than now, the item lives from then on: nothing deletes the message's schedule,
        and if the ledger forgot the message before that fires, it would be sent.
        """
        now = self.clock()
        at = number(milliseconds(now))
        error: Sets = {"code": string("cancelled"), "message": string(message)}
        values: Sets = {
            ":status": string("cancelled"),
            ":now": at,
            ":updatedAt": string(iso(now)),
            ":ttl": number(max(due, now) + self.ttl),
            ":error": {"M": error},
            ":no_history": {"L": []},
            ":entry": {"L": [{"M": {"at": at, "status": string("cancelled")}}]},
        }
        told = ""
        if to:
            told += ", #to = :to"
            values[":to"] = strings(to)
        if callback_url:
            # DynamoDB adds no entry to a map that is not there.
            told += ", callback_url = :callback_url, callbacks = if_not_exists(callbacks, :callbacks)"
            values |= {":callback_url": string(callback_url), ":callbacks": {"M": {}}}
        return try_update(
            self.client,
            self.table,
            {"id": string(id_), "event_type": string(event_type)},
            f"""SET #status = :status, completedAt = :now, updatedAt = :updatedAt, #ttl = :ttl,
                #error = :error, history = list_append(if_not_exists(history, :no_history), :entry),
                putAt = if_not_exists(putAt, :now){told}
            REMOVE trouble, dead_lettered_at""",
            UNCLAIMED,
            values,
        )[0]
