"""Items that can never be sent, and odd ones that can: the whole list of what a producer may get wrong."""

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
    """Where it is the id that is wrong; else the name of the case stands in it."""


BAD = {
    "no address": Bad("to", "give `to` (or `email`)", {"email": None}),
    "an empty address": Bad("to", "give `to` (or `email`)", {"email": ""}),
    "no @": Bad("email", "use name@domain.example", {"email": "ada.example.com"}),
    "two @": Bad("email", "use name@domain.example", {"email": "ada@home@example.com"}),
    "no domain": Bad("to", "use name@domain.example", {"to": "Ada <ada@localhost>"}),
    "one bad of three": Bad("to[1]", "use name@domain.example", {"to": ["a@b.example", "x", "c@d.example"]}),
    "a bad cc": Bad("cc", "use name@domain.example", {"cc": "nobody"}),
    "a bad bcc": Bad("bcc[0]", "use name@domain.example", {"bcc": ["nobody", "a@b.example"]}),
    "a bad reply_to": Bad("reply_to", "use name@domain.example", {"reply_to": "nobody"}),
    "51 recipients": Bad("to", "at most 50", {"to": [f"r{number}@example.com" for number in range(51)]}),
    "a line break in a header": Bad(
        "headers.X-Order", "line break", {"headers": {"X-Order": "7\r\nBcc: eve@example.com"}}
    ),
    "LF in a header": Bad("headers.X-Order", "line break", {"headers": {"X-Order": "7\nBcc: e@example.com"}}),
    "CR in a header": Bad("headers.X-Order", "line break", {"headers": {"X-Order": "7\rBcc: e@example.com"}}),
    "a line break in a header's name": Bad("headers", "printable ASCII", {"headers": {"X-A: 1\r\nBcc": "x"}}),
    "a line break in the subject": Bad(
        "subject", "use one line", {"subject": "Hello\r\nBcc: eve@example.com", "text": "Hello"}
    ),
    "a line break in a template's subject": Bad(
        "subject", "one line", {"first_name": "Ada\r\nBcc: e@b.example"}
    ),
    "a line break in from": Bad("from", "use one line", {"from": "Shop\r\n <mailroom@example.com>"}),
    "a line break in to": Bad("email", "use one line", {"email": "Ada\n <ada@example.com>"}),
    "a line break in reply_to": Bad(
        "reply_to", "use one line", {"reply_to": "a@b.example\r\nBcc: e@b.example"}
    ),
    "a foreign from": Bad("from", "mailroom@example.com", {"from": "ceo@bank.example"}),
    "an unknown template": Bad("template", "use one of: default", {"template": "welcome"}),
    "a template outside its folder": Bad("template", "use letters, digits", {"template": "../mail/default"}),
    "a missing variable": Bad("first_name", "the item must have it", {"first_name": None}),
    "a template that loops": Bad("template", "loop over less", {"template": "endless"}),
    "a template that reaches for internals": Bad("first_name", "is missing", {"template": "prying"}),
    "template beside text": Bad("template", "one or the other", {"template": "default", "text": "Hello"}),
    "text without subject": Bad("subject", "add it", {"text": "Hello"}),
    "subject without text": Bad("subject", "add text or html", {"subject": "Hello"}),
    "reserved header": Bad("headers.Bcc", "reserved", {"headers": {"Bcc": "eve@example.com"}}),
    "reserved header in capitals": Bad(
        "headers.CONTENT-TYPE", "reserved", {"headers": {"CONTENT-TYPE": "text/html"}}
    ),
    "our own header": Bad("headers.X-Correlation-Id", "reserved", {"headers": {"X-Correlation-Id": "7"}}),
    "13 headers": Bad("headers", "at most 12", {"headers": {f"X-{number}": "1" for number in range(13)}}),
    "a missing attachment": Bad(
        "attachments[0].ref", "put the object before", {"attachments": [{"ref": "{bucket}/nowhere.pdf"}]}
    ),
    "an attachment outside the bucket": Bad(
        "attachments[0].ref", "outside the payload bucket", {"attachments": [{"ref": "s3://other/bill.pdf"}]}
    ),
    "an attachment that SES does not send": Bad(
        "attachments[0].filename", "send a link", {"attachments": [{"ref": "{bucket}/order.js"}]}
    ),
    "an attachment without a ref": Bad("attachments[0]", "ref", {"attachments": [{"filename": "bill.pdf"}]}),
    "send_at in words": Bad("send_at", "use one like 2026-11-21T09:00:00Z", {"send_at": "tomorrow at nine"}),
    "send_at in another order": Bad(
        "send_at", "use one like 2026-11-21T09:00:00Z", {"send_at": "21.11.2026 09:00"}
    ),
    "send_at in epoch seconds": Bad("send_at", "expected a string", {"send_at": Decimal(1795257381)}),
    "send_at in ten years": Bad("send_at", "over a year ahead", {"send_at": "2036-11-21T09:00:00Z"}),
    "expires_at in the past": Bad("expires_at", "use a time to come", {"expires_at": LONG_AGO}),
    "expires_at in no format": Bad("expires_at", "use one like 2026-11-21T09:00:00Z", {"expires_at": "soon"}),
    "an unknown event_type": Bad("event_type", "use mail", {"event_type": "pigeon"}),
    "an event_type in capitals": Bad("event_type", "use mail", {"event_type": "MAIL"}),
    "a number as address": Bad("email", "expected a string", {"email": Decimal(7)}),
    "a map as address": Bad("to", "expected a string or a list", {"to": {"address": "ada@example.com"}}),
    "a number among addresses": Bad("to[1]", "expected a string", {"to": ["a@b.example", Decimal(7)]}),
    "a map as subject": Bad("subject", "expected a string", {"subject": {"en": "Hello"}, "text": "Hello"}),
    "a number as text": Bad("text", "expected a string", {"subject": "Hello", "text": Decimal("3.14")}),
    "a number as header": Bad("headers.X-Order", "is not a string", {"headers": {"X-Order": Decimal(7)}}),
    "a map as header": Bad("headers.X-Order", "is not a string", {"headers": {"X-Order": {"is": "7"}}}),
    "a list as headers": Bad("headers", "expected a map", {"headers": ["X-Order: 7"]}),
    "a number as template": Bad("template", "expected a string", {"template": Decimal(1)}),
    "a fraction as ttl": Bad("ttl", "expected a whole number", {"ttl": Decimal("1795257381.52")}),
    "a lane that is none": Bad("lane", "use normal or bulk", {"lane": "express"}),
    "a callback_url that is none": Bad(
        "callback_url", "use https://", {"callback_url": "javascript:alert(1)"}
    ),
    "the system's own attribute": Bad("attempt", "name that attribute otherwise", {"attempt": Decimal(2)}),
    "payload_ref elsewhere": Bad(
        "payload_ref", "use {bucket}/key", {"payload_ref": "s3://other/letter.json"}
    ),
    "payload_ref to a file": Bad("payload_ref", "use {bucket}/key", {"payload_ref": "file:///etc/passwd"}),
    "payload_ref to nothing": Bad(
        "payload_ref", "put the object before", {"payload_ref": "{bucket}/nowhere.json"}
    ),
    "payload_ref to no JSON": Bad("payload_ref", "is not a JSON object", {"payload_ref": "{bucket}/no-json"}),
    "an id of 181 bytes": Bad("id", "use at most 180", id="é" * 90 + "x"),
    "an id as long as a key can be": Bad("id", "use at most 180", id="x" * 2048),
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
"""What must be sent: attributes by name."""
