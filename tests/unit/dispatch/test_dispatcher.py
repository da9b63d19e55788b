"""Dispatch: every item goes its way, at its time."""

import json
import math
from decimal import Decimal
from typing import Any

import pytest

from mailroom.aws.dynamo_values import plain
from mailroom.dispatch.dispatcher import Dispatcher
from mailroom.ledger.ledger import Ledger
from mailroom.message.message import CampaignStart, Key
from tests.support.unit.dispatching import Counted, Log, dispatcher_of, iso_after, numbered
from tests.support.unit.fakes import Meddler, client_error, failing
from tests.support.unit.shared import KEY, LEDGER, NOW, Aws, FakeClock, image, item

START: dict[str, Any] = {"campaign": "weekly", "run": "r", "start": 7}


def test_an_item_becomes_a_queue_message_with_its_channel_and_type(dispatcher: Dispatcher, aws: Aws) -> None:
    assert dispatcher.dispatch(numbered(item(first_name="Vincent", age=37))) == set()
    (found,) = aws.receive()
    assert json.loads(found["Body"]) == item(first_name="Vincent", age=37)
    attributes = {name: each["StringValue"] for name, each in found["MessageAttributes"].items()}
    assert attributes == {"channel": "mail", "type": "plaintext"}
    assert aws.item() == {}


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"text": ..., "html": "<p>Hi</p>"}, "html"),
        ({"text": ..., "subject": ..., "template": "welcome"}, "template"),
    ],
)
def test_the_attribute_type_of_a_queue_message_names_the_kind_of_the_messages_content(
    dispatcher: Dispatcher, aws: Aws, changes: dict[str, Any], kind: str
) -> None:
    dispatcher.dispatch(numbered(item(**changes)))
    assert aws.receive()[0]["MessageAttributes"]["type"]["StringValue"] == kind


def test_bulk_messages_have_a_queue_of_their_own(dispatcher: Dispatcher, aws: Aws) -> None:
    dispatcher.dispatch(numbered(item(id="a", lane="bulk"), item(id="b"), item(id="c", lane="normal")))
    assert [each["id"] for each in aws.bodies("mail-bulk")] == ["a"]
    assert sorted(each["id"] for each in aws.bodies()) == ["b", "c"]


def test_a_hundred_items_are_queued_in_ten_calls_and_in_their_order(
    aws: Aws, clock: FakeClock, counted: Counted
) -> None:
    client = Meddler(aws.sqs)
    assert (
        dispatcher_of(aws, clock, sqs=client).dispatch(
            numbered(*(item(id=f"m-{each}") for each in range(100)))
        )
        == set()
    )
    sent = [json.loads(each["MessageBody"])["id"] for _, call in client.calls for each in call["Entries"]]
    assert len(client.calls) == 10
    assert sent == [f"m-{each}" for each in range(100)]
    assert counted() == {"Dispatched": 100}


def test_the_attributes_of_an_item_reach_its_queue_message_whatever_their_dynamodb_types(
    dispatcher: Dispatcher, aws: Aws
) -> None:
    huge = "12345678901234567890123456789012345678"
    odd = {
        **image(**item(none=None, flag=True, deep={"a": [{"b": "c"}]})),
        "binary": {"B": "AP8="},
        "binaries": {"BS": ["AP8="]},
        "names": {"SS": ["b", "a"]},
        "numbers": {"NS": ["2", "1"]},
        "huge": {"N": huge},
        "price": {"N": "9.95"},
    }
    assert dispatcher.dispatch(numbered(plain(odd))) == set()
    body = aws.receive()[0]["Body"]
    found = json.loads(body, parse_float=Decimal)
    assert (found["binary"], found["binaries"], found["names"]) == ("AP8=", ["AP8="], ["a", "b"])
    assert (found["numbers"], found["huge"], found["price"]) == ([1, 2], int(huge), Decimal("9.95"))
    assert (found["none"], found["flag"], found["deep"]) == (None, True, {"a": [{"b": "c"}]})


@pytest.mark.parametrize("text", ["\ufffe", "\uffff", "a\0b", "\x1b[0m", "🎉", "\u2028"])
def test_a_character_that_sqs_refuses_reaches_the_queue_escaped(
    dispatcher: Dispatcher, aws: Aws, text: str
) -> None:
    assert dispatcher.dispatch(numbered(item(text=text))) == set()
    (found,) = aws.receive()
    assert json.loads(found["Body"])["text"] == text
    assert not {"\ufffe", "\uffff", "\0"} & set(found["Body"])


def test_messages_that_together_exceed_the_size_of_an_sqs_batch_are_all_queued(
    dispatcher: Dispatcher, aws: Aws
) -> None:
    assert (
        dispatcher.dispatch(numbered(*(item(id=f"m-{each}", text="x" * 300_000) for each in range(4))))
        == set()
    )
    assert len(aws.receive()) == 4


@pytest.mark.parametrize(("wait", "delay"), [(-3600, 0), (0, 0), (1, 1), (60, 60), (119, 119), (120, 120)])
def test_a_send_at_within_two_minutes_becomes_the_delay_of_the_queue_message(
    aws: Aws, clock: FakeClock, wait: float, delay: int
) -> None:
    client = Meddler(aws.sqs)
    assert dispatcher_of(aws, clock, sqs=client).dispatch(numbered(item(send_at=iso_after(wait)))) == set()
    ((_, call),) = client.calls
    assert call["Entries"][0].get("DelaySeconds", 0) == delay
    assert aws.item() == {}


@pytest.mark.parametrize("wait", [121, 86_400, 365 * 86_400])
def test_a_message_with_a_send_at_over_two_minutes_ahead_waits_in_the_ledger_and_is_not_queued(
    dispatcher: Dispatcher, aws: Aws, counted: Counted, wait: float
) -> None:
    assert dispatcher.dispatch(numbered(item(send_at=iso_after(wait))), {"100": NOW - 5}) == set()
    found = aws.item()
    assert (found["status"], found["scheduledFor"], found["wait"]["reason"]) == (
        *("scheduled", iso_after(wait)),
        "send_at",
    )
    assert (found["waits_at"], found["putAt"]) == (math.ceil(NOW + wait), int((NOW - 5) * 1000))
    assert aws.receive() == []
    assert counted() == {"Scheduled": 1}


@pytest.mark.parametrize(
    "times",
    [
        {"send_at": iso_after(3600), "ttl": int(NOW) + 3600 + 15 * 86_400},
        {"send_at": iso_after(120), "ttl": int(NOW) + 121},
        {"ttl": int(NOW) + 1},
    ],
    ids=["kept for long enough", "in its queue as a whole", "sent at once"],
)
def test_an_item_is_accepted_if_the_mailbox_is_not_read_for_it_again_after_its_ttl(
    dispatcher: Dispatcher, aws: Aws, counted: Counted, times: dict[str, Any]
) -> None:
    assert dispatcher.dispatch(numbered(item(**times))) == set()
    assert "Refused" not in counted()


def test_the_waits_of_a_batch_are_written_to_the_ledger_in_one_call_per_25_messages(
    aws: Aws, clock: FakeClock, counted: Counted
) -> None:
    client = Meddler(aws.dynamodb)
    items = numbered(*(item(id=f"m-{number}", send_at=iso_after(3600)) for number in range(60)))
    assert dispatcher_of(aws, clock, dynamodb=client).dispatch(items) == set()
    assert client.names() == ["batch_execute_statement"] * 3
    assert counted() == {"Scheduled": 60}


def test_a_message_that_is_dispatched_twice_waits_once(dispatcher: Dispatcher, aws: Aws) -> None:
    for _ in range(2):
        assert dispatcher.dispatch(numbered(item(send_at=iso_after(3600)))) == set()
    (found,) = aws.dynamodb.scan(TableName=LEDGER)["Items"]
    assert found["waits_at"] == {"N": str(int(NOW) + 3600)}


def test_a_message_that_was_cancelled_before_its_dispatch_does_not_wait_for_its_send_at(
    dispatcher: Dispatcher, aws: Aws, ledger: Ledger
) -> None:
    assert ledger.cancel(KEY)
    assert dispatcher.dispatch(numbered(item(send_at=iso_after(3600)))) == set()
    assert (aws.item()["status"], "wait" in aws.item()) == ("cancelled", False)


def test_dispatch_reports_only_records_of_scheduled_messages_as_failed_while_the_ledger_is_down(
    aws: Aws, clock: FakeClock, log: Log
) -> None:
    down = Meddler(aws.dynamodb, batch_execute_statement=failing(client_error("ThrottlingException")))
    items = numbered(item(id="a"), item(id="b", send_at=iso_after(3600)), item(id="c"))
    assert dispatcher_of(aws, clock, dynamodb=down).dispatch(items) == {"101"}
    assert sorted(each["id"] for each in aws.bodies()) == ["a", "c"]
    assert aws.item("b") == {}
    assert [line["message"] for line in log()] == ["waits for send_at were not written; they are tried again"]


# Messages of campaigns


@pytest.mark.parametrize("attempt", [1, 2])
def test_a_campaigns_item_is_queued_with_its_campaign_start_even_if_it_is_a_later_attempt(
    dispatcher: Dispatcher, aws: Aws, attempt: int
) -> None:
    composed = item(id="weekly#r#ada", campaign_start=START, attempt=attempt)
    assert dispatcher.dispatch(numbered(composed)) == set()
    assert aws.bodies() == [composed]


def test_a_campaigns_item_of_a_later_attempt_waits_for_its_send_at(
    dispatcher: Dispatcher, ledger: Ledger, aws: Aws
) -> None:
    composed = item(id="weekly#r#ada", campaign_start=START, attempt=2, send_at=iso_after(3600))
    ledger.restart(Key("weekly#r#ada", "mail"), {}, CampaignStart(**START))
    assert dispatcher.dispatch(numbered(composed)) == set()
    found = aws.item("weekly#r#ada")
    assert (found["status"], found["attempts"], found["campaign_start"]) == ("scheduled", 1, START)
