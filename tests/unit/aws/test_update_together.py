"""Conditional updates of many items in a transaction."""

from collections.abc import Sequence
from typing import Any

import pytest
from botocore.exceptions import ClientError

from mailroom.aws.dynamo_updates import Conditional, update_together
from mailroom.aws.dynamo_values import number
from tests.support.unit.fakes import Meddler, client_error
from tests.support.unit.shared import LEDGER, Aws, image


def update_of(id_: str, condition: str = "attribute_not_exists(#status)") -> Conditional:
    key = image(id=id_, event_type="mail")
    return Conditional(key, "SET x = if_not_exists(x, :zero) + :one", condition, VALUES)


VALUES = {":zero": number(0), ":one": number(1)}
FALSE = "attribute_exists(#status)"


def written(aws: Aws, count: int) -> list[int]:
    return [aws.item(f"m-{each}").get("x", 0) for each in range(count)]


def cancelled(*codes: str) -> Any:
    """Return a change for `Meddler`: the transaction is cancelled for reasons with these codes."""

    def call(real: Any, **_: Any) -> Any:
        response: Any = {
            "Error": {"Code": "TransactionCanceledException"},
            "CancellationReasons": [{"Code": code} for code in codes],
        }
        raise real.__self__.exceptions.TransactionCanceledException(response, "TransactWriteItems")

    return call


def in_turn(*changes: Any) -> Any:
    """Return a change for `Meddler`: the first calls are these changes, and later calls are real."""
    remaining = [*changes]

    def call(real: Any, **arguments: Any) -> Any:
        return remaining.pop(0)(real, **arguments) if remaining else real(**arguments)

    return call


def sizes(client: Meddler) -> Sequence[int]:
    """Return the number of items in each transaction."""
    return [len(call["TransactItems"]) for _, call in client.calls]


def test_items_are_updated_in_one_call(aws: Aws) -> None:
    client: Any = Meddler(aws.dynamodb)
    assert update_together(client, LEDGER, [update_of(f"m-{each}") for each in range(10)]) == [True] * 10
    assert (client.names(), written(aws, 10)) == (["transact_write_items"], [1] * 10)


def test_no_items_take_no_call(aws: Aws) -> None:
    client: Any = Meddler(aws.dynamodb)
    assert (update_together(client, LEDGER, []), client.names()) == ([], [])


def test_an_item_whose_condition_is_false_is_left_out_and_the_others_are_updated_once(aws: Aws) -> None:
    client: Any = Meddler(aws.dynamodb)
    updates = [update_of("m-0"), update_of("m-1", FALSE), update_of("m-2")]
    assert update_together(client, LEDGER, updates) == [True, False, True]
    assert (sizes(client), written(aws, 3)) == ([3, 2], [1, 0, 1])


def test_items_whose_conditions_are_all_false_take_one_call(aws: Aws) -> None:
    client: Any = Meddler(aws.dynamodb)
    assert update_together(client, LEDGER, [update_of("m-0", FALSE), update_of("m-1", FALSE)]) == [False] * 2
    assert (sizes(client), written(aws, 2)) == ([2], [0, 0])


def test_more_than_a_hundred_items_take_a_call_for_every_hundred(aws: Aws) -> None:
    client: Any = Meddler(aws.dynamodb)
    updates = [
        update_of(f"m-{each}", FALSE if each == 120 else "attribute_not_exists(x)") for each in range(130)
    ]
    assert update_together(client, LEDGER, updates) == [each != 120 for each in range(130)]
    assert sizes(client) == [100, 30, 29]
    assert written(aws, 130) == [int(each != 120) for each in range(130)]


def test_a_conflict_with_another_writer_is_repeated(aws: Aws) -> None:
    change = in_turn(cancelled("None", "TransactionConflict"), cancelled("TransactionConflict", "None"))
    client: Any = Meddler(aws.dynamodb, transact_write_items=change)
    assert update_together(client, LEDGER, [update_of("m-0"), update_of("m-1")]) == [True, True]
    assert (sizes(client), written(aws, 2)) == ([2, 2, 2], [1, 1])


def test_items_that_other_writers_keep_changing_are_not_updated_after_four_calls(aws: Aws) -> None:
    client: Any = Meddler(aws.dynamodb, transact_write_items=cancelled("None", "TransactionConflict"))
    assert update_together(client, LEDGER, [update_of("m-0"), update_of("m-1")]) == [False, False]
    assert (sizes(client), written(aws, 2)) == ([2] * 4, [0, 0])


@pytest.mark.parametrize(
    "error",
    [
        cancelled("None", "ValidationError"),
        cancelled("ConditionalCheckFailed", "ThrottlingError"),
        cancelled("None"),
        in_turn(lambda _real, **_: (_ for _ in ()).throw(client_error("ThrottlingException"))),
    ],
    ids=["an invalid item", "a throttled item", "no reason for each item", "another error"],
)
def test_any_other_error_is_raised(aws: Aws, error: Any) -> None:
    client: Any = Meddler(aws.dynamodb, transact_write_items=error)
    with pytest.raises(ClientError):
        update_together(client, LEDGER, [update_of("m-0"), update_of("m-1")])
    assert (sizes(client), written(aws, 2)) == ([2], [0, 0])
