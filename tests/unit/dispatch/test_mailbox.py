"""The mailbox, read back."""

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


def test_a_key_asked_for_twice_is_read_once_and_consistently(aws: Aws) -> None:
    aws.put(MAILBOX, id="a", event_type="mail")
    client = Meddler(aws.dynamodb)
    found = Mailbox(client, MAILBOX).items([Key("a", "mail")] * 2)  # type: ignore[arg-type]
    assert len(found) == 1
    assert [arguments["RequestItems"][MAILBOX]["ConsistentRead"] for _, arguments in client.calls] == [True]
