"""Counts of a campaign run's messages by status. Each message that waits or has ended is counted exactly
once.

The search row of a message in its run contains the status by which the message is counted. The row and the
run's counts (the tally) change in one transaction, on the condition that the row has not changed since it was
read. The row is read before the ledger. If another worker has written the row since, the condition fails, and
the message is counted again from its newer state. So no message is counted twice or lost, in whatever order
the stream's records arrive.

A tally consists of several items, because one item could not receive all writes of a run. Their `ttl` is
derived from the time when the run began, so that they expire together.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from secrets import randbelow
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mailroom.aws.dynamo_batches import batch_get
from mailroom.aws.dynamo_values import number, plain, string
from mailroom.errors import Contention
from mailroom.ledger.items import run_of
from mailroom.message.message import Key, begun_of
from mailroom.search.rows import Row, run_row

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

UNDER_WAY = ("sending", "retrying")
"""Statuses that are not counted, because they soon change. Messages with any other status are counted, also
waiting ones (`scheduled`)."""
SLOTS = 8
"""Number of items of a tally. Each worker chooses one at random, so that workers that count at the same time
seldom write the same item."""
KEPT_SECONDS = 2 * 3650 * 86_400
"""Seconds from a run's beginning to the ttl of its counts. DynamoDB deletes items at any time after their
ttl, in any order. So the counts must outlive their run, which expires two years after its last change."""
_CHANGES = 99
"""Maximum number of messages in a transaction, which has 100 items including the tally."""
_NO_COUNTS = ("found_by", "put", "ttl")
_ROUNDS = 4
"""Maximum number of tries if other workers count the same messages."""


Read = Callable[[Iterable[Key]], Mapping[Key, Mapping[str, Any]]]
"""Function that returns the ledger items of messages by key, in plain Python."""


class _Change(Struct, frozen=True):
    """Change of the status by which a message is counted. An empty status means that the message is not
    counted."""

    row: Row
    old: str
    new: str


class Tallies:
    """Reads and writes the tallies of runs, and the runs' rows, in the table `search`. Only messages of
    `campaigns` are counted."""

    def __init__(self, client: "DynamoDBClient", table: str, campaigns: Sequence[str] = ()) -> None:
        self._client = client
        self._table = table
        self._campaigns = campaigns
        self._slot = str(randbelow(SLOTS))

    def count(self, items: Iterable[Mapping[str, Any]], read: Read) -> None:
        """Count messages by their present status. `items` are their ledger items in plain Python, which may
        be outdated, because `read` reads them again. A repeated call is harmless. Raises Contention, and the
        errors of `read` and of DynamoDB."""
        of_runs: dict[str, dict[Key, Row]] = defaultdict(dict)
        for item in items:
            row, begun_at = run_row(item), begun_of(item["id"])
            campaign, run = run_of(item)
            if row is not None and begun_at is not None and campaign in self._campaigns:
                of_runs[_tally(campaign, run, begun_at)][row.key] = row
        for tally, rows in of_runs.items():
            for _ in range(_ROUNDS):
                changes = self._changes(rows, read)
                parts = (changes[first : first + _CHANGES] for first in range(0, len(changes), _CHANGES))
                if all([self._write(tally, part) for part in parts]):  # noqa: C419 - each of them is written
                    break
            else:
                raise Contention(f"a part of {tally} was not counted, because other workers count it too")

    def of_run(self, campaign: str, run: str, begun_at: int) -> Counter[str]:
        """Return the number of messages by status, for the run that began at `begun_at` (epoch seconds)."""
        response = self._client.query(
            TableName=self._table,
            KeyConditionExpression="found_by = :found_by",
            ExpressionAttributeValues={":found_by": string(_tally(campaign, run, begun_at))},
            ConsistentRead=True,
        )
        counts: Counter[str] = Counter()
        for slot in map(plain, response["Items"]):
            counts.update({name: value for name, value in slot.items() if name not in _NO_COUNTS})
        return +counts

    def _changes(self, rows: Mapping[Key, Row], read: Read) -> list[_Change]:
        """Return the changes of the messages that are counted by another status than their present one."""
        places = [row.place for row in rows.values()]
        items = batch_get(self._client, {self._table: places}, consistent=(self._table,))[self._table]
        counted = {item["put"]: str(item.get("counted", "")) for item in items}
        changes = []
        for key, item in read(rows).items():
            row = rows[key]
            status = "" if item["status"] in UNDER_WAY else item["status"]
            changes.append(_Change(row, counted.get(row.put, ""), status))
        return [change for change in changes if change.old != change.new]

    def _write(self, tally: str, changes: Sequence[_Change]) -> bool:
        """Write the changes in one transaction. Returns False if another worker has changed a row."""
        updates = [*map(_of_row, changes), self._of_tally(tally, changes)]
        writes: Any = [{"Update": {"TableName": self._table, **update}} for update in updates]
        try:
            self._client.transact_write_items(TransactItems=writes)
        except self._client.exceptions.TransactionCanceledException as cancelled:
            answer: Any = cancelled.response
            codes = {reason.get("Code") for reason in answer.get("CancellationReasons", ())}
            if codes - {"None", "ConditionalCheckFailed", "TransactionConflict"}:
                raise
            return False
        return True

    def _of_tally(self, tally: str, changes: Sequence[_Change]) -> dict[str, Any]:
        counts = Counter(change.new for change in changes)
        counts.subtract(change.old for change in changes)
        grown = {status: count for status, count in counts.items() if status and count}
        return {
            "Key": {"found_by": string(tally), "put": string(self._slot)},
            "UpdateExpression": "SET #ttl = :ttl"
            + (" ADD " + ", ".join(f"#{status} :{status}" for status in grown) if grown else ""),
            "ExpressionAttributeNames": {"#ttl": "ttl", **{f"#{status}": status for status in grown}},
            "ExpressionAttributeValues": {
                ":ttl": number(int(tally.rpartition("#")[2]) + KEPT_SECONDS),
                **{f":{status}": number(count) for status, count in grown.items()},
            },
        }


def _of_row(change: _Change) -> dict[str, Any]:
    row, counted = change.row, {"old": change.old, "new": change.new}
    sets = "SET id = :id, event_type = :event_type, #ttl = :ttl"
    return {
        "Key": row.place,
        "UpdateExpression": f"{sets}, counted = :new" if change.new else f"{sets} REMOVE counted",
        "ConditionExpression": "counted = :old" if change.old else "attribute_not_exists(counted)",
        "ExpressionAttributeNames": {"#ttl": "ttl"},
        "ExpressionAttributeValues": {
            ":id": string(row.key.id),
            ":event_type": string(row.key.event_type),
            ":ttl": number(row.ttl),
            **{f":{name}": string(status) for name, status in counted.items() if status},
        },
    }


def _tally(campaign: str, run: str, begun_at: int) -> str:
    return f"tally#{campaign}#{run}#{begun_at}"
