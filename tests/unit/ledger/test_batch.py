"""Batched reads of messages' items."""

from mailroom.ledger.batch import items_of
from mailroom.message.message import Key
from tests.support.unit.fakes import Meddler
from tests.support.unit.shared import MAILBOX, Aws


def test_one_consistent_read_returns_the_existing_items_of_a_batch_of_keys(aws: Aws) -> None:
    aws.put(MAILBOX, id="a", event_type="mail", to="a@example.com", age=37)
    aws.put(MAILBOX, id="a", event_type="sms")
    client = Meddler(aws.dynamodb)
    keys = [Key("a", "mail"), Key("b", "mail"), Key("a", "mail")]
    assert items_of(client, MAILBOX, keys) == {  # type: ignore[arg-type]
        Key("a", "mail"): {"id": "a", "event_type": "mail", "to": "a@example.com", "age": 37},
    }
    assert [arguments["RequestItems"][MAILBOX]["ConsistentRead"] for _, arguments in client.calls] == [True]
