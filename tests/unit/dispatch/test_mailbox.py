"""The mailbox, read back."""

from collections.abc import Callable
from typing import Any

from mailroom.dispatch.release import Mailbox
from mailroom.message.message import Key
from tests.support.unit.fakes import Meddler
from tests.support.unit.shared import MAILBOX, Aws


def test_the_items_that_still_exist_come_back_by_key(aws: Aws) -> None:
    aws.put(MAILBOX, id="a", event_type="mail", to="a@example.com", age=37)
    aws.put(MAILBOX, id="a", event_type="sms")
    found = Mailbox(aws.dynamodb, MAILBOX).items([Key("a", "mail"), Key("b", "mail")])
    assert found == {
        Key("a", "mail"): {"id": "a", "event_type": "mail", "to": "a@example.com", "age": 37},
    }


def test_no_keys_make_no_call(aws: Aws) -> None:
    client = Meddler(aws.dynamodb)
    assert Mailbox(client, MAILBOX).items([]) == {}  # type: ignore[arg-type]
    assert client.calls == []


def test_a_key_asked_for_twice_is_read_once_and_consistently(aws: Aws) -> None:
    aws.put(MAILBOX, id="a", event_type="mail")
    client = Meddler(aws.dynamodb)
    found = Mailbox(client, MAILBOX).items([Key("a", "mail")] * 2)  # type: ignore[arg-type]
    assert len(found) == 1
    assert [arguments["RequestItems"][MAILBOX]["ConsistentRead"] for _, arguments in client.calls] == [True]


def test_more_keys_than_a_call_takes_are_read_in_several(aws: Aws) -> None:
    keys = [Key(f"m-{at}", "mail") for at in range(230)]
    for key in keys:
        aws.put(MAILBOX, id=key.id, event_type=key.event_type)
    client = Meddler(aws.dynamodb)
    assert set(Mailbox(client, MAILBOX).items(keys)) == set(keys)  # type: ignore[arg-type]
    assert [len(arguments["RequestItems"][MAILBOX]["Keys"]) for _, arguments in client.calls] == [
        100,
        100,
        30,
    ]


def test_what_a_reply_had_no_room_for_is_asked_for_again(aws: Aws) -> None:
    keys = [Key(f"m-{at}", "mail") for at in range(5)]
    for key in keys:
        aws.put(MAILBOX, id=key.id, event_type=key.event_type)

    def two_at_most(real: Callable[..., Any], RequestItems: Any) -> Any:  # noqa: N803 - boto3's own name
        asked = RequestItems[MAILBOX]["Keys"]
        reply = real(RequestItems={MAILBOX: {"Keys": asked[:2]}})
        if asked[2:]:
            reply["UnprocessedKeys"] = {MAILBOX: {"Keys": asked[2:]}}
        return reply

    client = Meddler(aws.dynamodb, batch_get_item=two_at_most)
    assert set(Mailbox(client, MAILBOX).items(keys)) == set(keys)  # type: ignore[arg-type]
    assert len(client.calls) == 3
