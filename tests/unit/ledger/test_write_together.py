"""Several writes of the ledger in one call."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from mailroom.aws.dynamo_updates import Update
from mailroom.aws.dynamo_values import string
from mailroom.clock import iso
from mailroom.ledger.items import MAX_HISTORY
from mailroom.ledger.table import LedgerTable, Write
from mailroom.message.message import Key
from tests.support.unit.fakes import Meddler, client_error, failing
from tests.support.unit.shared import LEDGER, NOW, NOW_MS, TTL, Aws, FakeClock


def write_of(id_: str, condition: str = "attribute_not_exists(#status)") -> Write:
    changes = Update({"status": string("cancelled")}, once={"putAt": string("now")})
    return Write(Key(id_, "mail"), changes, condition, None, "cancelled", "stopped")


def ledger_table(client: Any, clock: FakeClock) -> LedgerTable:
    return LedgerTable(client, LEDGER, TTL, clock)


def statuses_written(aws: Aws, count: int) -> list[bool]:
    return ["status" in aws.item(f"m-{each}") for each in range(count)]


def test_several_ledger_writes_are_made_in_one_call_with_their_dates_and_history_entries(
    aws: Aws, clock: FakeClock
) -> None:
    client: Any = Meddler(aws.dynamodb)
    assert (
        ledger_table(client, clock).write_together([write_of(f"m-{each}") for each in range(10)])
        == [True] * 10
    )
    assert client.names() == ["transact_write_items"]
    assert aws.item("m-7") == {
        "id": "m-7",
        "event_type": "mail",
        "status": "cancelled",
        "putAt": "now",
        "updatedAt": iso(NOW),
        "ttl": NOW + TTL,
        "history": [{"at": NOW_MS, "status": "cancelled", "code": "stopped"}],
    }


def test_an_empty_list_of_writes_makes_no_call(aws: Aws, clock: FakeClock) -> None:
    client: Any = Meddler(aws.dynamodb)
    assert (ledger_table(client, clock).write_together([]), client.names()) == ([], [])


def test_a_write_whose_condition_is_false_is_left_out_and_the_others_are_made(
    aws: Aws, clock: FakeClock
) -> None:
    client: Any = Meddler(aws.dynamodb)
    writes = [write_of("m-0"), write_of("m-1", "attribute_exists(#status)"), write_of("m-2")]
    assert ledger_table(client, clock).write_together(writes) == [True, False, True]
    assert client.names() == ["transact_write_items", *["update_item"] * 3]
    assert statuses_written(aws, 3) == [True, False, True]
    assert len(aws.item("m-0")["history"]) == 1


def test_more_than_a_hundred_ledger_writes_are_made_in_calls_of_at_most_a_hundred(
    aws: Aws, clock: FakeClock
) -> None:
    client: Any = Meddler(aws.dynamodb)
    writes = [write_of(f"m-{each}") for each in range(130)]
    assert ledger_table(client, clock).write_together(writes) == [True] * 130
    assert [len(call["TransactItems"]) for _, call in client.calls] == [100, 30]
    assert statuses_written(aws, 130) == [True] * 130


def test_only_the_writes_of_a_call_that_failed_are_made_separately(aws: Aws, clock: FakeClock) -> None:
    client: Any = Meddler(aws.dynamodb)
    writes = [write_of(f"m-{each}") for each in range(101)]
    writes[100] = write_of("m-100", "attribute_exists(#status)")
    assert ledger_table(client, clock).write_together(writes) == [*[True] * 100, False]
    assert client.names() == ["transact_write_items", "transact_write_items", "update_item"]


def test_writes_in_conflict_with_another_writer_are_made_separately(aws: Aws, clock: FakeClock) -> None:
    def conflict(real: Any, **_: Any) -> Any:
        response: Any = {
            "Error": {"Code": "TransactionCanceledException"},
            "CancellationReasons": [{"Code": "TransactionConflict"}, {"Code": "None"}],
        }
        raise real.__self__.exceptions.TransactionCanceledException(response, "TransactWriteItems")

    client: Any = Meddler(aws.dynamodb, transact_write_items=conflict)
    assert ledger_table(client, clock).write_together([write_of("m-0"), write_of("m-1")]) == [True, True]
    assert statuses_written(aws, 2) == [True, True]


def test_a_write_to_a_ledger_item_with_a_full_history_is_made_without_a_new_history_entry(
    aws: Aws, clock: FakeClock
) -> None:
    full = [{"at": NOW_MS, "status": "retrying"}] * MAX_HISTORY
    aws.put(LEDGER, id="m-0", event_type="mail", history=full)
    results = ledger_table(aws.dynamodb, clock).write_together([write_of("m-0"), write_of("m-1")])
    assert (results, statuses_written(aws, 2)) == ([True, True], [True, True])
    assert [len(aws.item(f"m-{each}")["history"]) for each in range(2)] == [MAX_HISTORY, 1]


@pytest.mark.parametrize("call", ["transact_write_items", "update_item"])
def test_a_group_of_ledger_writes_raises_an_error_of_dynamodb(aws: Aws, clock: FakeClock, call: str) -> None:
    client: Any = Meddler(aws.dynamodb, **{call: failing(client_error("ThrottlingException"))})
    with pytest.raises(ClientError, match="ThrottlingException"):
        ledger_table(client, clock).write_together(
            [write_of("m-0"), write_of("m-1", "attribute_exists(#status)")]
        )
