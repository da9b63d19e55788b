"""Taking a message back: one conditional write, and it and a sender's claim exclude each other.

Producers use this as well, so it needs boto3 and no more.
"""

from typing import TYPE_CHECKING

from mailroom.aws.dynamo import Sets, number, string, strings, try_update
from mailroom.clock import iso, milliseconds

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

# A token outlives its claim's release.
UNCLAIMED = """attribute_not_exists(startedAt) AND attribute_not_exists(completedAt)
    AND attribute_not_exists(claim_token)"""
"""The condition that no worker has claimed a message, in this life or one before."""
TAKEN_BACK = "it was taken back before its send_at"


def withdraw(
    client: "DynamoDBClient",
    table: str,
    id_: str,
    event_type: str,
    *,
    now: float,
    ttl: float,
    message: str = TAKEN_BACK,
    to: str | list[str] | None = None,
    callback_url: str | None = None,
    due: float = 0,
) -> bool:
    """Cancel a message that no worker has claimed, even if the ledger, `table`, has no item yet. A sender
    that receives the message drops it. `message` says why; `to`, `callback_url` and `due` (epoch seconds) are
    the message's. False if a worker has claimed it, or if it has ended.

    The item lives for `ttl` seconds after `now` or, if that is later, after `due`: nothing deletes the
    message's schedule, and if the ledger forgot the message before that fires, it would be sent.
    """
    at = number(milliseconds(now))
    error: Sets = {"code": string("cancelled"), "message": string(message)}
    values: Sets = {
        ":status": string("cancelled"),
        ":now": at,
        ":updatedAt": string(iso(now)),
        ":ttl": number(max(due, now) + ttl),
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
        client,
        table,
        {"id": string(id_), "event_type": string(event_type)},
        f"""SET #status = :status, completedAt = :now, updatedAt = :updatedAt, #ttl = :ttl, #error = :error,
            history = list_append(if_not_exists(history, :no_history), :entry),
            putAt = if_not_exists(putAt, :now){told}
        REMOVE trouble, dead_lettered_at""",
        UNCLAIMED,
        values,
    )[0]
