"""The tables of a stage, for tests: with their keys and indexes, as the stacks make them."""

from typing import Any

from mailroom.aws.dynamo_values import plain
from mailroom.ledger.items import FAILURE_KEYS, FAILURES, LINES, MessageKey, failure_of
from mailroom.ledger.waits import INDEX, PROJECTED

_LEDGER_TYPES = {
    **dict.fromkeys(("id", "event_type", *FAILURE_KEYS, "line", "waits_in"), "S"),
    **dict.fromkeys(("submittedAt", "waits_at"), "N"),
}


def create_table(client: Any, table: str, partition: str = "id", sort: str | None = "event_type") -> None:
    """Create a table whose keys are strings."""
    keys = [partition] if sort is None else [partition, sort]
    client.create_table(
        TableName=table,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=_schema(*keys),
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in keys],
    )


def failure(key: MessageKey, status: str, at_ms: int) -> dict[str, str]:
    """The keys of a failure in its index, in plain Python."""
    return plain(failure_of(key, status, at_ms))


def check_releases(client: Any, table: str = "ledger") -> None:
    """Fail the test if the ledger lacks the reason why a claim was released: a message that is neither
    claimed nor ended, and that no provider has, needs its `trouble`.

    The items come from the double's memory: a scan after each invocation would take most of the time of large
    worlds.
    """
    for item in client.tables[table].items.values():
        if item.get("status") == {"S": "sending"} and "startedAt" not in item:
            assert "provider_id" in item or "trouble" in item, item


def create_ledger(client: Any, table: str = "ledger") -> None:
    """Create the ledger's table with its indexes."""
    client.create_table(
        TableName=table,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": kind} for name, kind in _LEDGER_TYPES.items()
        ],
        KeySchema=_schema("id", "event_type"),
        GlobalSecondaryIndexes=[
            {**_index(FAILURES, FAILURE_KEYS, ()), "Projection": {"ProjectionType": "ALL"}},
            _index(LINES, ("line", "submittedAt"), ("provider_ids",)),
            _index(INDEX, ("waits_in", "waits_at"), PROJECTED),
        ],
    )


def _index(name: str, keys: tuple[str, str], others: tuple[str, ...]) -> dict[str, Any]:
    projection = {"ProjectionType": "INCLUDE", "NonKeyAttributes": [*others]}
    return {"IndexName": name, "KeySchema": _schema(*keys), "Projection": projection}


def _schema(*keys: str) -> list[dict[str, str]]:
    return [
        {"AttributeName": key, "KeyType": kind} for key, kind in zip(keys, ("HASH", "RANGE"), strict=False)
    ]
