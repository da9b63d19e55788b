"""The payload bucket: one bucket, and each fault of a reference the message's own."""

import io
import json
import tracemalloc
from contextlib import suppress
from typing import Any

import pytest
from botocore.exceptions import ClientError

from mailroom.channels.contracts import CONTRACTS
from mailroom.content.payload_attributes import expanded
from mailroom.content.payloads import MAX_PAYLOAD_BYTES, MAX_PAYLOAD_VALUES, Payloads
from mailroom.errors import Invalid
from mailroom.message.message import Message, parse
from mailroom_stacks.settings.channels import SENDER_MB
from tests.support.unit.fakes import Meddler, client_error, failing
from tests.support.unit.shared import BUCKET, Aws, Item, mail

OWN_MB = 60
"""Bytes that a sender takes before it reads a payload: docs/reference/limits.md."""
REF = f"s3://{BUCKET}/runs/7.json"


@pytest.fixture
def payloads(aws: Aws) -> Payloads:
    return Payloads(aws.s3, BUCKET)


def put_payload(aws: Aws, content: bytes | dict[str, Any], key: str = "runs/7.json") -> None:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    aws.s3.put_object(Bucket=BUCKET, Key=key, Body=body)


@pytest.mark.parametrize("key", ["a", "runs/7.json", "with space/ü.pdf", "k" * 1024])
def test_the_key_of_a_payload_reference_is_the_part_after_the_payload_bucket(
    payloads: Payloads, key: str
) -> None:
    assert payloads.key("payload_ref", f"s3://{BUCKET}/{key}") == key


@pytest.mark.parametrize(
    "ref",
    [
        "s3://another-bucket/a",
        f"s3://{BUCKET}-2/a",
        f"s3://{BUCKET}",
        f"s3://{BUCKET}/",
        f"https://{BUCKET}.s3.amazonaws.com/a",
        "runs/7.json",
        "",
        "file:///etc/passwd",
    ],
)
def test_a_reference_that_is_not_a_key_in_the_payload_bucket_is_refused(payloads: Payloads, ref: str) -> None:
    with pytest.raises(Invalid) as caught:
        payloads.key("payload_ref", ref)
    expected = f"payload_ref: {ref!r} is outside the payload bucket; use s3://{BUCKET}/key"
    assert str(caught.value) == expected


@pytest.mark.parametrize("key", ["k" * 1025, "ü" * 513])
def test_a_reference_with_a_key_longer_than_s3_allows_is_refused(payloads: Payloads, key: str) -> None:
    with pytest.raises(Invalid, match=r"^attachments\[0\]\.ref: .*1024 bytes"):
        payloads.key("attachments[0].ref", f"s3://{BUCKET}/{key}")


def test_an_object_of_the_payload_bucket_within_the_size_limit_is_read(aws: Aws, payloads: Payloads) -> None:
    put_payload(aws, b"%PDF", "bill.pdf")
    assert payloads.read("attachments[0].ref", f"s3://{BUCKET}/bill.pdf", 4) == b"%PDF"


def test_an_object_of_the_payload_bucket_over_the_size_limit_is_refused(aws: Aws, payloads: Payloads) -> None:
    put_payload(aws, b"%PDF-", "bill.pdf")
    with pytest.raises(Invalid) as caught:
        payloads.read("attachments[0].ref", f"s3://{BUCKET}/bill.pdf", 4)
    assert str(caught.value) == "attachments[0].ref: has 5 bytes; use at most 4"


def test_a_reference_to_a_missing_object_is_refused_and_the_error_names_the_reference(
    payloads: Payloads,
) -> None:
    with pytest.raises(Invalid) as caught:
        payloads.read("attachments[2].ref", f"s3://{BUCKET}/none", 100)
    assert caught.value.field == "attachments[2].ref"
    assert caught.value.problem == f"'s3://{BUCKET}/none' does not exist; put the object before the message"


@pytest.mark.parametrize("code", ["AccessDenied", "InternalError", "SlowDown"])
def test_an_error_of_s3_is_raised_instead_of_a_refusal_of_the_message(aws: Aws, code: str) -> None:
    client = Meddler(aws.s3, get_object=failing(client_error(code)))
    with pytest.raises(ClientError):
        Payloads(client, BUCKET).read("payload_ref", REF, 100)  # type: ignore[arg-type]


def test_a_payload_adds_attributes_and_does_not_override_attributes_of_the_item(
    aws: Aws, payloads: Payloads
) -> None:
    put_payload(
        aws, {"text": "from the payload", "subject": "from the payload", "id": "another", "city": "Arles"}
    )
    message = mail(text=None, payload_ref=REF)
    del message.variables["text"]
    found = expanded(payloads, message, REF)
    assert found == {
        "id": "m-1",
        "event_type": "mail",
        "to": "vincent@example.com",
        "subject": "Hello",
        "text": "from the payload",
        "city": "Arles",
    }


@pytest.mark.parametrize("content", [b"", b"no", b"[]", b'"text"', b"\xff\xfe", b'{"a": "\xff"}', b"{} {}"])
def test_a_payload_that_is_not_a_json_object_is_refused(aws: Aws, payloads: Payloads, content: bytes) -> None:
    put_payload(aws, content)
    with pytest.raises(Invalid, match=r"^payload_ref: is not a JSON object: "):
        expanded(payloads, mail(payload_ref=REF), REF)


def test_a_payload_over_ten_megabytes_is_refused(aws: Aws, payloads: Payloads) -> None:
    put_payload(aws, b" " * (MAX_PAYLOAD_BYTES + 1))
    with pytest.raises(Invalid, match="payload_ref: has 10485761 bytes; use at most 10485760"):
        expanded(payloads, mail(payload_ref=REF), REF)


TOO_MANY = "payload_ref: has 150001 values, counted by commas and brackets; use at most 150000"


@pytest.mark.parametrize("mark", ["[", "{", ","])
def test_a_payload_with_too_many_values_is_refused_before_it_is_parsed(
    aws: Aws, payloads: Payloads, mark: str
) -> None:
    put_payload(aws, ('{"a": ' + mark * MAX_PAYLOAD_VALUES).encode())
    with pytest.raises(Invalid) as caught:
        expanded(payloads, mail(payload_ref=REF), REF)
    assert str(caught.value) == TOO_MANY


DEEP = 400
SHAPES = {
    "maps in maps": b'{"":' * DEEP + b"0" + b"}" * DEEP,
    "lists in lists": b"[" * DEEP + b"]" * DEEP,
    "maps of one": b'{"":0}',
    "short texts": b'"ab"',
}
"""A value that takes the most memory for its bytes."""


class OneObject:
    """A bucket with one object, which is returned without a copy in memory."""

    class exceptions:  # noqa: N801 - as boto3 has it
        class NoSuchKey(Exception):
            """There is none."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def get_object(self, **_: str) -> dict[str, Any]:
        return {"Body": io.BytesIO(self._content), "ContentLength": len(self._content)}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_largest_payload_fits_into_the_memory_of_a_sender(shape: str) -> None:
    piece = SHAPES[shape]
    marks = sum(map(piece.count, (b"[", b"{", b","))) + 1
    values = b",".join([piece] * ((MAX_PAYLOAD_VALUES - 9) // marks))
    # Python stores four bytes for each character of a text with a character beyond the Basic Multilingual
    # Plane.
    text = "🎉".encode() + b"a" * (MAX_PAYLOAD_BYTES - len(values) - 40)
    objects: Any = OneObject(b'{"payload": [%s, "%s"]}' % (values, text))
    # A webhook's is encoded once more, to be measured.
    known: Item = {"event_type": "webhook", "url": "https://hooks.example.com/1", "payload_ref": REF}
    message = parse({"id": "m-1", **known}, CONTRACTS)
    del values, text
    tracemalloc.start()
    try:
        item = expanded(Payloads(objects, BUCKET), message, REF)
        with suppress(Invalid):  # too large to be posted
            parse(item, CONTRACTS)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < (SENDER_MB - OWN_MB) * 2**20


@pytest.mark.parametrize(
    "name", ["send_at", "unless", "expires_at", "lane", "callback_url", "payload_ref", "ttl"]
)
def test_an_attribute_that_dispatch_reads_is_refused_in_a_payload(
    aws: Aws, payloads: Payloads, name: str
) -> None:
    put_payload(aws, {name: "2026-12-31T00:00:00Z"})
    with pytest.raises(Invalid, match=f"payload_ref: contains {name}, which is only allowed in the item"):
        expanded(payloads, mail(payload_ref=REF), REF)


WHOM: dict[str, tuple[Item, tuple[str, ...]]] = {
    "mail": ({"to": "vincent@example.com", "text": "Hi", "subject": "Hi"}, ("to", "email", "cc", "bcc")),
    "sms": ({"to": "+16175551234", "text": "Hi"}, ("to",)),
    "push": ({"to": "token", "body": "Hi"}, ("to", "platform")),
    "fax": ({"to": "+16175551234"}, ("to",)),
    "webhook": ({"url": "https://hooks.example/1"}, ("url",)),
}
"""An item of each channel, and what says whom it reaches."""


@pytest.mark.parametrize(
    ("channel", "name"), [(channel, name) for channel, (_, names) in WHOM.items() for name in names]
)
def test_a_recipient_in_a_payload_is_refused(aws: Aws, payloads: Payloads, channel: str, name: str) -> None:
    put_payload(aws, {name: "theo@example.com"})
    of_it = {"id": "m-1", "event_type": channel, "payload_ref": REF, **WHOM[channel][0]}
    with pytest.raises(Invalid, match=f"payload_ref: contains {name}, which is only allowed in the item"):
        expanded(payloads, parse(of_it, CONTRACTS), REF)


def test_every_channel_lists_the_attributes_that_contain_its_recipients() -> None:
    assert {name: contract.addressing for name, contract in CONTRACTS.items()} == {
        **dict.fromkeys(CONTRACTS, Message.addressing),
        **{name: names for name, (_, names) in WHOM.items()},
    }


def test_a_payload_may_contain_an_addressing_attribute_of_another_channel_as_a_variable(
    aws: Aws, payloads: Payloads
) -> None:
    put_payload(aws, {"url": "https://shop.example/42", "platform": "web"})
    found = expanded(payloads, mail(payload_ref=REF), REF)
    assert (found["url"], found["platform"]) == ("https://shop.example/42", "web")


def test_a_payload_nested_too_deeply_is_refused(aws: Aws, payloads: Payloads) -> None:
    put_payload(aws, b'{"a": ' + b"[" * 5000 + b"]" * 5000 + b"}")
    # Python 3.14 parses such a payload, and the limit of levels refuses it. Earlier versions cannot parse it.
    with pytest.raises(Invalid, match=r"payload_ref: (is not a JSON object|has over 500 levels)"):
        expanded(payloads, mail(payload_ref=REF), REF)
