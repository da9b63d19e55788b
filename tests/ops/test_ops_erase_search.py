"""Erasing a person from the table by which messages are found."""

from typing import Any

import pytest

from tests.ops.test_ops_erase import erased, places, put_sent_message
from tests.support.ops.dead_letters import DeadLettersStage, erasable
from tests.support.ops.search import index

STAGE = erasable
AT: dict[str, Any] = {"putAt": 1_795_251_600_000, "ttl": 9_999_999_999}


def search_rows(stage: DeadLettersStage) -> list[tuple[str, str]]:
    """The rows that there are: the kind of each, and the message."""
    return sorted((each["found_by"].partition("#")[0], each["id"]) for each in stage.items("search"))


@pytest.mark.parametrize("typed", ["ada@bücher.example", "Ada <ADA@xn--bcher-kva.example>"])
@pytest.mark.parametrize("written", ["Ada@Bücher.example", "ada@xn--bcher-kva.example"])
def test_the_search_rows_of_a_persons_messages_are_deleted_in_every_spelling(
    stage: DeadLettersStage, typed: str, written: str
) -> None:
    put_sent_message(stage, "m-1", to=written, **AT)
    put_sent_message(stage, "m-2", to="bob@example.com", **AT)
    index(stage.dynamodb)
    answer = erased(recipient=typed)
    assert search_rows(stage) == [("newest", "m-2"), ("to", "m-2")]
    assert places(answer, "erased") == {"mailbox": 1, "ledger": 1, "search": 1}
    assert places(answer, "left") == {}


def test_the_search_row_of_an_erased_follow_up_is_deleted(stage: DeadLettersStage) -> None:
    unless = [{"id": "code", "event_type": "sms", "status": ["delivered"]}]
    put_sent_message(stage, "m-1", unless=unless, **AT)
    put_sent_message(stage, "m-2", to="bob@example.com", unless=unless, **AT)
    index(stage.dynamodb)
    answer = erased()
    assert search_rows(stage) == [("newest", "m-2"), ("to", "m-2"), ("unless", "m-2")]
    assert places(answer, "erased")["search"] == 1
    index(stage.dynamodb)
    assert len(search_rows(stage)) == 3


def test_the_search_rows_of_the_other_recipients_stay(stage: DeadLettersStage) -> None:
    to = ["ada@example.com", "bob@example.com"]
    put_sent_message(stage, "m-1", to=to, recipients={each: {} for each in to}, **AT)
    index(stage.dynamodb)
    answer = erased()
    assert search_rows(stage) == [("newest", "m-1"), ("to", "m-1")]
    assert places(answer, "erased")["search"] == 1
    index(stage.dynamodb)
    assert search_rows(stage) == [("newest", "m-1"), ("to", "m-1")]


def test_the_search_row_of_the_persons_address_is_deleted_although_its_message_is_gone(
    stage: DeadLettersStage,
) -> None:
    put_sent_message(stage, "m-1", **AT)
    index(stage.dynamodb)
    for table in ("ledger", "mailbox"):
        stage.dynamodb.delete_item(
            TableName=f"mailroom-dev-{table}", Key={"id": {"S": "m-1"}, "event_type": {"S": "mail"}}
        )
    assert places(erased(), "erased") == {"search": 1}
    assert search_rows(stage) == [("newest", "m-1")]


def test_an_erasure_works_if_the_stage_has_no_search(stage: DeadLettersStage) -> None:
    del stage.functions.environment["SEARCH_TABLE"]
    put_sent_message(stage, "m-1", **AT)
    assert places(erased(), "erased") == {"mailbox": 1, "ledger": 1}
