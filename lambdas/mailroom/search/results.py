"""A campaign's results: how many messages of a run wait or ended how, each counted once.

A run's row of a message says as what the message is counted. The row and the run's tally change in one
transaction, under the condition that the row is as it was read. The row is read first, and then the ledger:
whoever has written the row since has seen a later state of the message, and the condition fails. So no record
counts twice, none is lost, and their order makes no difference.

A tally has several items: one could not take all writes of a run. All have the one ttl that follows from when
the run began, whoever writes them and however late: with ttls of their own, some would go while others stay.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from secrets import randbelow
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mailroom.aws.dynamo_batches import batch_get
from mailroom.aws.dynamo_values import number, plain, string
from mailroom.errors import Contention
from mailroom.message.message import Key, begun_of, run_of
from mailroom.search.rows import Row, run_row

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

UNDER_WAY = ("sending", "retrying")
"""Statuses that are not counted: a worker has the message, or soon will. A message that waits is counted, so
that it is listed among those of its run."""
SLOTS = 8
"""Items of a tally. Workers share them by chance, so two that count at once mostly do not meet."""
KEPT_SECONDS = 2 * 3650 * 86_400
"""Seconds from a run's beginning to the ttl of its counts. DynamoDB deletes each item at some time after its
ttl, in no order. So the counts outlive the run, by which alone they are read: that goes when nothing has
changed it for `retention.ledger_days`, which are 3650 at most."""
_CHANGES = 99
"""Messages of one transaction, which has 100 items: the tally is one of them."""
_NO_COUNTS = ("found_by", "put", "ttl")
_ROUNDS = 4
"""Tries of what another worker counts at the same time."""


Read = Callable[[Iterable[Key]], Mapping[Key, Mapping[str, Any]]]
"""Function that reads the ledger's items of messages, in plain Python."""


class _Change(Struct, frozen=True):
    """A message that is counted as `old`, and is `new` ("": it is not counted)."""

    row: Row
    old: str
    new: str


class Tallies:
    """The runs' rows and tallies in the table `search`. `campaigns` are those whose messages are counted."""

    def __init__(self, client: "DynamoDBClient", table: str, campaigns: Sequence[str] = ()) -> None:
        self._client = client
        self._table = table
        self._campaigns = campaigns
        self._slot = str(randbelow(SLOTS))

    def count(self, items: Iterable[Mapping[str, Any]], read: Read) -> None:
        """Count messages as what they are now. `items` (plain Python) are those of the ledger at any time;
        `read` reads them again. To count once more is harmless. Raises Contention, and what `read` and
        DynamoDB raise."""
        of_runs: dict[str, dict[Key, Row]] = defaultdict(dict)
        for item in items:
            row, begun_at = run_row(item), begun_of(item["id"])
            campaign, run = run_of(item["id"])
            if row is not None and begun_at is not None and campaign in self._campaigns:
                of_runs[_tally(campaign, run, begun_at)][row.key] = row
        for tally, rows in of_runs.items():
            for _ in range(_ROUNDS):
                changes = self._changes(rows, read)
                parts = (changes[at : at + _CHANGES] for at in range(0, len(changes), _CHANGES))
                if all([self._write(tally, part) for part in parts]):  # noqa: C419 - each of them is written
                    break
            else:
                raise Contention(f"a part of {tally} was not counted, for others count it too")

    def of_run(self, campaign: str, run: str, begun_at: int) -> Counter[str]:
        """Counts of the messages of the run that began at `begun_at`, by status."""
        reply = self._client.query(
            TableName=self._table,
            KeyConditionExpression="found_by = :found_by",
            ExpressionAttributeValues={":found_by": string(_tally(campaign, run, begun_at))},
            ConsistentRead=True,
        )
        found: Counter[str] = Counter()
        for slot in map(plain, reply["Items"]):
            found.update({name: value for name, value in slot.items() if name not in _NO_COUNTS})
        return +found

    def _changes(self, rows: Mapping[Key, Row], read: Read) -> list[_Change]:
        """What is counted otherwise than it is."""
        places = [row.place for row in rows.values()]
        found = batch_get(self._client, {self._table: places}, consistent=True)[self._table]
        counted = {each["put"]: str(each.get("counted", "")) for each in found}
        changes = []
        for key, item in read(rows).items():
            row = rows[key]
            status = "" if item["status"] in UNDER_WAY else item["status"]
            changes.append(_Change(row, counted.get(row.put, ""), status))
        return [each for each in changes if each.old != each.new]

    def _write(self, tally: str, changes: Sequence[_Change]) -> bool:
        """All of them in one transaction. False: another worker was at one of them."""
        updates = [*map(_of_row, changes), self._of_tally(tally, changes)]
        writes: Any = [{"Update": {"TableName": self._table, **each}} for each in updates]
        try:
            self._client.transact_write_items(TransactItems=writes)
        except self._client.exceptions.TransactionCanceledException as cancelled:
            answer: Any = cancelled.response
            codes = {each.get("Code") for each in answer.get("CancellationReasons", ())}
            if codes - {"None", "ConditionalCheckFailed", "TransactionConflict"}:
                raise
            return False
        return True

    def _of_tally(self, tally: str, changes: Sequence[_Change]) -> dict[str, Any]:
        counts = Counter(each.new for each in changes)
        counts.subtract(each.old for each in changes)
        grown = {status: more for status, more in counts.items() if status and more}
        return {
            "Key": {"found_by": string(tally), "put": string(self._slot)},
            "UpdateExpression": "SET #ttl = :ttl"
            + (" ADD " + ", ".join(f"#{each} :{each}" for each in grown) if grown else ""),
            "ExpressionAttributeNames": {"#ttl": "ttl", **{f"#{each}": each for each in grown}},
            "ExpressionAttributeValues": {
                ":ttl": number(int(tally.rpartition("#")[2]) + KEPT_SECONDS),
                **{f":{each}": number(more) for each, more in grown.items()},
            },
        }


def _of_row(change: _Change) -> dict[str, Any]:
    row, counted = change.row, {"old": change.old, "new": change.new}
    told = "SET id = :id, event_type = :event_type, #ttl = :ttl"
    return {
        "Key": row.place,
        "UpdateExpression": f"{told}, counted = :new" if change.new else f"{told} REMOVE counted",
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
