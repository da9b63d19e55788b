"""Items that are too large for DynamoDB."""

import json
from decimal import Decimal
from typing import Any

import pytest

from mailroom.aws.dynamo_values import image_of, plain
from mailroom.channels.contracts import CONTRACTS
from mailroom.clock import iso
from mailroom.content.payload_attributes import ROUTING, expanded
from mailroom.content.payloads import MAX_PAYLOAD_BYTES, MAX_PAYLOAD_VALUES, Payloads
from mailroom.dispatch.dispatcher import Validator
from mailroom.errors import Invalid
from mailroom.http.url_policy import UrlPolicy
from mailroom.mailbox import KEPT_ATTRIBUTES, NEEDED_AFTER, Oversize, encoded
from mailroom.message.message import decode, encode, parse
from tests.support.unit.shared import BUCKET, NOW, Aws, FakeClock, item

LARGE = "x" * 450_000
DAY = 86400
DELIVERY_ATTRIBUTES: dict[str, Any] = {
    "window": {"from": "09:00", "to": "20:00", "zone": "UTC"},
    "send_at": "2026-11-22T09:00:00Z",
    "unless": {"id": "code-17", "event_type": "mail", "status": "delivered"},
    "expires_at": "2026-11-23T09:00:00Z",
    "lane": "bulk",
    "topic": "news",
    "callback_url": "https://hooks.example/1",
    "payload_ref": None,
    "ttl": 1_900_000_000,
    "attempt": 1,
}
"""Attributes about the delivery, each with a value that is valid in a large item."""


@pytest.fixture
def oversize(aws: Aws) -> Oversize:
    return Oversize(aws.s3, lambda: BUCKET)


def lightened(oversize: Oversize, **changes: Any) -> dict[str, Any]:
    return plain(oversize.lightened(image_of(item(**changes))))


def test_a_small_item_stays_unchanged_and_needs_no_bucket(aws: Aws) -> None:
    def never() -> str:
        raise AssertionError("the bucket was read")

    image = image_of(item(text="x" * 160_000))
    assert Oversize(aws.s3, never).lightened(image) is image


def test_the_content_of_a_large_item_is_moved_to_the_payload_bucket_and_its_addressing_stays(
    oversize: Oversize,
) -> None:
    light = lightened(oversize, text=LARGE, cc="b@x.example", topic="news", lane="bulk")
    assert light.keys() == {"id", "event_type", "to", "cc", "topic", "lane", "payload_ref"}


@pytest.mark.parametrize(
    "large",
    [
        item(text=LARGE, subject="Hello", price=Decimal("1.10"), many=[1, None, True], headers={"X-A": "1"}),
        {"id": "s", "event_type": "sms", "to": "+16175551234", "text": "Hi", "blob": LARGE},
        {"id": "p", "event_type": "push", "to": "token", "platform": "ios", "title": "Hi", "blob": LARGE},
        {"id": "w", "event_type": "webhook", "url": "https://h.example/1", "payload": [1.5], "blob": LARGE},
    ],
    ids=lambda large: str(large["event_type"]),
)
def test_a_sender_reads_the_whole_item_that_was_put(
    aws: Aws, oversize: Oversize, large: dict[str, Any]
) -> None:
    light = plain(oversize.lightened(image_of(large)))
    message = parse(decode(encode(light)), CONTRACTS)
    whole = expanded(Payloads(aws.s3, BUCKET), message, str(message.payload_ref))
    assert json.loads(encode(whole)) == json.loads(encode(large))
    assert type(parse(whole, CONTRACTS)) is type(parse(large, CONTRACTS))


def test_equal_large_content_gets_the_same_payload_reference_in_any_order_of_attributes(
    oversize: Oversize,
) -> None:
    light = oversize.lightened(image_of({**item(), "a": LARGE, "b": 1}))
    assert oversize.lightened(image_of({"b": 1, "a": LARGE, **item()})) == light
    assert lightened(oversize, a=LARGE + "y", b=1)["payload_ref"] != plain(light)["payload_ref"]


def test_content_whose_json_is_too_large_for_a_queue_is_moved_to_the_payload_bucket(
    oversize: Oversize,
) -> None:
    assert "payload_ref" in lightened(oversize, text="\x01" * 200_000)
    assert "payload_ref" not in lightened(oversize, text="x" * 200_000)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"event_type": "fax", "text": LARGE}, "pdf_url"),
        ({"payload_ref": "s3://b/k", "text": LARGE}, "without its payload"),
        ({"to": LARGE}, "without its content"),
        ({"text": "x" * (MAX_PAYLOAD_BYTES + 1)}, str(MAX_PAYLOAD_BYTES)),
        ({"rows": [0] * MAX_PAYLOAD_VALUES}, "has 150003 values of content, counted by commas and brackets"),
    ],
)
def test_a_large_item_whose_content_cannot_be_moved_is_refused_with_the_reason(
    oversize: Oversize, aws: Aws, changes: dict[str, Any], problem: str
) -> None:
    with pytest.raises(Invalid, match=problem) as caught:
        lightened(oversize, **changes)
    assert caught.value.field == "item"


def test_the_attributes_that_dispatch_reads_are_never_moved_out_of_a_large_item() -> None:
    assert set(ROUTING) <= KEPT_ATTRIBUTES | {"payload_ref"}
    assert {name for contract in CONTRACTS.values() for name in contract.addressing} <= KEPT_ATTRIBUTES
    assert set(ROUTING) == DELIVERY_ATTRIBUTES.keys()


@pytest.fixture
def validator(aws: Aws, clock: FakeClock) -> Validator:
    payloads = Payloads(aws.s3, BUCKET)
    return Validator(
        CONTRACTS, {"mail": ["normal", "bulk"]}, payloads=payloads, callbacks=UrlPolicy(), clock=clock
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *DELIVERY_ATTRIBUTES.items(),
        *((name, None) for name in DELIVERY_ATTRIBUTES if name not in {"lane", "attempt", "payload_ref"}),
    ],
)
def test_a_valid_large_item_can_be_sent_with_any_attribute_about_its_delivery(
    aws: Aws, oversize: Oversize, validator: Validator, name: str, value: Any
) -> None:
    beside = {"send_at": DELIVERY_ATTRIBUTES["send_at"]} if name == "unless" else {}
    large = item(text=LARGE, **beside, **{name: value})
    validator.validate(large)
    message = validator.validate(decode(encode(plain(oversize.lightened(image_of(large))))))
    sent = expanded(Payloads(aws.s3, BUCKET), message, str(message.payload_ref))
    assert sent == (large if name != "payload_ref" else item(text=LARGE))


@pytest.mark.parametrize("name", ["lane", "attempt"])
def test_a_large_item_with_null_in_an_attribute_that_may_not_be_null_is_refused(
    validator: Validator, name: str
) -> None:
    with pytest.raises(Invalid) as caught:
        validator.validate(item(text=LARGE, **{name: None}))
    assert caught.value.field == name


@pytest.fixture
def bounded(aws: Aws, clock: FakeClock) -> Oversize:
    """Return a division into a bucket that stores its objects for 90 days."""
    return Oversize(aws.s3, lambda: BUCKET, 90 * DAY, clock=clock)


def test_large_content_that_would_be_deleted_before_its_send_at_is_refused(
    aws: Aws, bounded: Oversize
) -> None:
    latest = NOW + 90 * DAY - NEEDED_AFTER
    assert "payload_ref" in lightened(bounded, text=LARGE, send_at=iso(latest))
    count = aws.s3.list_objects_v2(Bucket=BUCKET)["KeyCount"]
    with pytest.raises(
        Invalid, match=r"^send_at: is over 75 days ahead, the longest wait of a large item; "
    ) as refused:
        lightened(bounded, text=LARGE + "y", send_at=iso(latest + 1))
    assert refused.value.field == "send_at"
    assert aws.s3.list_objects_v2(Bucket=BUCKET)["KeyCount"] == count > 0


def test_a_small_item_may_wait_longer_than_large_content_is_stored(bounded: Oversize) -> None:
    assert lightened(bounded, send_at=iso(NOW + 300 * DAY)).keys() == item(send_at="").keys()


@pytest.mark.parametrize("send_at", [..., None, "soon", 5, iso(NOW), iso(NOW - 300 * DAY)])
@pytest.mark.parametrize("lifetime", [90 * DAY, DAY])
def test_large_content_of_an_item_that_does_not_wait_is_moved_however_soon_the_bucket_deletes_it(
    aws: Aws, clock: FakeClock, lifetime: int, send_at: Any
) -> None:
    brief = Oversize(aws.s3, lambda: BUCKET, lifetime, clock=clock)
    assert "payload_ref" in lightened(brief, text=LARGE, send_at=send_at)


def test_large_content_may_wait_for_any_time_in_a_bucket_without_deletion(oversize: Oversize) -> None:
    assert "payload_ref" in lightened(oversize, text=LARGE, send_at=iso(NOW + 300 * DAY))


def test_the_json_of_large_content_is_canonical_and_contains_all_digits_of_numbers() -> None:
    value = {"b": Decimal("1.10"), "a": [None, True, "ü\n"], "c": {"z": 1, "y": Decimal("1E+100")}}
    assert encoded(value) == '{"a":[null,true,"ü\\n"],"b":1.10,"c":{"y":1E+100,"z":1}}'
    assert decode(encoded(value)) == value
