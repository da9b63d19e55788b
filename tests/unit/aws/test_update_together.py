"""Conditional updates of several items in one transaction."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from mailroom.aws.dynamo_updates import Conditional, update_together
from mailroom.aws.dynamo_values import number
from tests.support.unit.fakes import Meddler, client_error, failing
from tests.support.unit.shared import LEDGER, Aws, image


def update_of(id_: str, condition: str = "attribute_not_exists(#status)") -> Conditional:
    key = image(id=id_, event_type="mail")
    return Conditional(key, "SET #count = :one", condition, {":one": number(1)})


def counts_of_items(aws: Aws, count: int) -> list[int]:
    return [aws.item(f"m-{each}").get("count", 0) for each in range(count)]


def test_a_hundred_items_are_updated_in_one_call(aws: Aws) -> None:
    client: Any = Meddler(aws.dynamodb)
    assert update_together(client, LEDGER, [update_of(f"m-{each}") for each in range(100)])
    assert (client.names(), counts_of_items(aws, 100)) == (["transact_write_items"], [1] * 100)


def test_items_are_not_updated_together_if_the_condition_of_one_item_is_false(aws: Aws) -> None:
    client: Any = Meddler(aws.dynamodb)
    updates = [update_of("m-0"), update_of("m-1", "attribute_exists(#status)"), update_of("m-2")]
    assert not update_together(client, LEDGER, updates)
    assert (client.names(), counts_of_items(aws, 3)) == (["transact_write_items"], [0, 0, 0])


@pytest.mark.parametrize("code", ["TransactionConflict", "ThrottlingError", "ValidationError"])
def test_update_together_returns_false_if_dynamodb_cancels_the_transaction_for_one_item(
    aws: Aws, code: str
) -> None:
    def cancelled(real: Any, **_: Any) -> Any:
        response: Any = {
            "Error": {"Code": "TransactionCanceledException"},
            "CancellationReasons": [{"Code": "None"}, {"Code": code}],
        }
        raise real.__self__.exceptions.TransactionCanceledException(response, "TransactWriteItems")

    client: Any = Meddler(aws.dynamodb, transact_write_items=cancelled)
    assert not update_together(client, LEDGER, [update_of("m-0"), update_of("m-1")])


def test_an_error_of_a_transaction_other_than_its_cancellation_is_raised(aws: Aws) -> None:
    client: Any = Meddler(aws.dynamodb, transact_write_items=failing(client_error("ThrottlingException")))
    with pytest.raises(ClientError, match="ThrottlingException"):
        update_together(client, LEDGER, [update_of("m-0")])
