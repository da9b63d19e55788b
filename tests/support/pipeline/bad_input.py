"""Items that can never be sent, a kind of mistake each, and odd ones that can. Variants are in unit tests."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

LONG_AGO = (datetime.now(UTC) - timedelta(hours=1)).isoformat()


@dataclass(frozen=True)
class Bad:
    """`at` is the attribute that the sentence must name, `remedy` a part of what it says is right."""

    at: str
    remedy: str
    attributes: dict[str, Any] = field(default_factory=dict)
    id: str = ""
    """The invalid id, or an empty text if the case's name is in the id."""


BAD = {
    "no address": Bad("to", "set `to` (or `email`)", {"email": None}),
    "one bad of three": Bad("to[1]", "use name@domain.example", {"to": ["a@b.example", "x", "c@d.example"]}),
    "51 recipients": Bad("to", "at most 50", {"to": [f"r{number}@example.com" for number in range(51)]}),
    "a line break in a header": Bad(
        "headers.X-Order", "printable ASCII", {"headers": {"X-Order": "7\r\nBcc: eve@example.com"}}
    ),
    "a line break in the subject": Bad(
        "subject", "use one line", {"subject": "Hello\r\nBcc: eve@example.com", "text": "Hello"}
    ),
    "a line break in a template's subject": Bad(
        "subject", "one line", {"first_name": "Ada\r\nBcc: e@b.example"}
    ),
    "a foreign from": Bad("from", "mailroom@example.com", {"from": "ceo@bank.example"}),
    "an unknown template": Bad("template", "use one of: default", {"template": "welcome"}),
    "a template outside its folder": Bad("template", "use letters, digits", {"template": "../mail/default"}),
    "a missing variable": Bad("first_name", "the message must have it", {"first_name": None}),
    "a template that loops": Bad("template", "loop over less", {"template": "endless"}),
    "a template that reaches for internals": Bad("first_name", "is missing", {"template": "prying"}),
    "template beside text": Bad("template", "use only one", {"template": "default", "text": "Hello"}),
    "reserved header": Bad("headers.Bcc", "reserved", {"headers": {"Bcc": "eve@example.com"}}),
    "a missing attachment": Bad(
        "attachments[0].ref", "put the object before", {"attachments": [{"ref": "{bucket}/nowhere.pdf"}]}
    ),
    "an attachment outside the bucket": Bad(
        "attachments[0].ref", "outside the payload bucket", {"attachments": [{"ref": "s3://other/bill.pdf"}]}
    ),
    "an attachment that SES does not send": Bad(
        "attachments[0].filename", "send a link", {"attachments": [{"ref": "{bucket}/order.js"}]}
    ),
    "send_at in words": Bad("send_at", "use one like 2026-11-21T09:00:00Z", {"send_at": "tomorrow at nine"}),
    "send_at in epoch seconds": Bad("send_at", "expected a string", {"send_at": Decimal(1795257381)}),
    "expires_at in the past": Bad("expires_at", "use a future time", {"expires_at": LONG_AGO}),
    "an unknown event_type": Bad("event_type", "use mail", {"event_type": "pigeon"}),
    "a number as address": Bad("email", "expected a string", {"email": Decimal(7)}),
    "a fraction as ttl": Bad("ttl", "expected a whole number", {"ttl": Decimal("1795257381.52")}),
    "a lane that is none": Bad("lane", "use normal or bulk", {"lane": "express"}),
    "a callback_url that is none": Bad(
        "callback_url", "use https://", {"callback_url": "javascript:alert(1)"}
    ),
    "the system's own attribute": Bad("attempt", "rename this attribute", {"attempt": Decimal(2)}),
    "payload_ref elsewhere": Bad(
        "payload_ref", "use {bucket}/key", {"payload_ref": "s3://other/letter.json"}
    ),
    "payload_ref to nothing": Bad(
        "payload_ref", "put the object before", {"payload_ref": "{bucket}/nowhere.json"}
    ),
    "payload_ref to no JSON": Bad("payload_ref", "is not a JSON object", {"payload_ref": "{bucket}/no-json"}),
    "an id of 181 bytes": Bad("id", "use at most 180", id="é" * 90 + "x"),
    "a line break in the id": Bad("id", "use printable ones", id="bad-7\r\nBcc: eve@example.com"),
    "NUL in the id": Bad("id", "use printable ones", id="bad-\x00"),
}

ODD: dict[str, dict[str, Any]] = {
    "an id of 180 bytes": {"id": "é" * 90},
    "an id of signs": {"id": '<a href="x">&?#/\\%00 😀'},
    "a binary variable": {"blob": b"\x00\xff"},
    "sets": {"colours": {"red", "blue"}, "numbers": {Decimal(1), Decimal("2.5")}, "blobs": {b"1", b"2"}},
    "the largest number": {"number": Decimal("9.9E+125")},
    "nested maps as variables": {
        "order": {"lines": [{"price": Decimal("2.50"), "gone": None, "paid": True}]}
    },
    "template marks in a variable": {"first_name": "{{ 7 * 7 }}{% raw %}"},
    "characters that SQS refuses": {"first_name": "A\uffffd\ufffea"},
    "names of the templates' own": {
        "self": "x",
        "range": "y",
        "loop": "z",
        "variables": {"first_name": "Eve"},
    },
    "a number for a name": {"first_name": Decimal("3.10")},
    "a domain with umlauts": {"email": "Jörg <joerg@bücher.example>"},
    "a send_at long past": {"send_at": LONG_AGO},
    "a to beside an email": {"to": ["grace@example.com"], "email": None},
}
"""Attributes by name that must be sent."""
