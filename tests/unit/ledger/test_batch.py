"""Batched reads of messages' items."""

from mailroom.ledger.batch import items_of
from mailroom.message.message import Key
from tests.support.unit.fakes import Meddler
from tests.support.unit.shared import MAILBOX, Aws


def test_a_batch_of_keys_is_read_once_and_consistently_and_returns_the_existing_items(aws: Aws) -> None:
    aws.put(MAILBOX, id="a", event_type="mail", to="a@example.com", age=37)
    aws.put(MAILBOX, id="a", event_type="sms")
    client = Meddler(aws.dynamodb)
    keys = [Key("a", "mail"), Key("b", "mail"), Key("a", "mail")]
    assert items_of(client, MAILBOX, keys) == {  # type: ignore[arg-type]
        Key("a", "mail"): {"id": "a", "event_type": "mail", "to": "a@example.com", "age": 37},
    }
    assert [arguments["RequestItems"][MAILBOX]["ConsistentRead"] for _, arguments in client.calls] == [True]
