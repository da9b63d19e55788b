"""The schemas of text messages and push notifications say what their contracts say."""

from typing import Any

import pytest

from tests.support.ops.schema import agree_on

SMS = {"id": "s-1", "event_type": "sms", "to": "+16175551234"}
PUSH = {"id": "p-1", "event_type": "push", "to": "arn:aws:sns:eu-central-1:123456789012:news"}


@pytest.mark.parametrize(
    ("item", "good"),
    [
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
def test_the_schema_takes_what_the_contract_takes(item: dict[str, Any], good: bool) -> None:
    agree_on(item, good=good)
