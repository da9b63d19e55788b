"""The schemas of all channels but mail agree with their contracts."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped] # it has no py.typed

from mailroom.channels.contracts import CONTRACTS
from mailroom.errors import Invalid
from mailroom.message.message import parse
from mailroom_ops.setup.schema import schema_of

FAX = {"id": "f-1", "event_type": "fax", "to": "+16175551234", "pdf_url": "https://files.example/f.pdf"}
WEBHOOK = {"id": "w-1", "event_type": "webhook", "url": "https://hooks.example/x", "payload": {"a": 1}}
SMS = {"id": "s-1", "event_type": "sms", "to": "+16175551234"}
PUSH = {"id": "p-1", "event_type": "push", "to": "arn:aws:sns:eu-central-1:123456789012:news"}


@pytest.mark.parametrize(
    ("item", "good"),
    [
        (FAX, True),
        ({**FAX, "to": 5}, False),
        ({**FAX, "payload_ref": "s3://b/k"}, False),
        ({name: FAX[name] for name in ("id", "event_type", "to")}, False),
        ({name: FAX[name] for name in ("id", "event_type", "pdf_url")}, False),
        (WEBHOOK, True),
        ({**WEBHOOK, "url": 7}, False),
        ({name: WEBHOOK[name] for name in ("id", "event_type", "url")}, False),
        ({**SMS, "text": "Hello"}, True),
        ({**SMS, "template": "default", "first_name": "Ada"}, True),
        ({**SMS, "media_urls": ["https://files.example/a.png"]}, True),
        (SMS, False),
        ({**SMS, "text": 7}, False),
        ({**SMS, "text": "Hello", "media_urls": "https://files.example/a.png"}, False),
        ({"id": "s-1", "event_type": "sms", "text": "Hello"}, False),
        ({**PUSH, "title": "Hello"}, True),
        ({**PUSH, "data": {"order": 7}}, True),
        (PUSH, False),
        ({**PUSH, "title": "Hello", "data": "order"}, False),
        ({"id": "p-1", "event_type": "push", "title": "Hello"}, False),
    ],
)
def test_the_schema_of_a_channel_accepts_the_same_items_as_the_contract(
    item: dict[str, Any], good: bool
) -> None:
    assert Draft202012Validator(schema_of(item["event_type"])).is_valid(item) == good
    if good:
        parse(item, CONTRACTS)
    else:
        with pytest.raises(Invalid):
            parse(item, CONTRACTS)
