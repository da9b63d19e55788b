"""The contract of a push notification, and its payload for each platform."""

import hashlib
import json
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from mailroom.channels.contracts import CONTRACTS
from mailroom.channels.push.contract import Push, push_to
from mailroom.errors import Invalid
from mailroom.message.message import Key, parse
from mailroom.providers.sns.sender import MAX_BYTES, PLATFORMS, attributes_of, identity, message_for
from tests.support.unit.push import ENDPOINT, IOS_ENDPOINT, TOKEN, TOPIC, payloads, push, push_item
from tests.support.unit.shared import BUCKET

ID = hashlib.sha256(b"push\0p-1").hexdigest()[:32]


def payloads_of(*platforms: str, **changes: Any) -> dict[str, Any]:
    return payloads(message_for(push(**changes), platforms or PLATFORMS))


@pytest.mark.parametrize(
    ("changes", "addressees"),
    [
        ({}, (ENDPOINT,)),
        ({"to": IOS_ENDPOINT}, (IOS_ENDPOINT,)),
        ({"to": TOPIC}, ()),
        ({"to": TOKEN, "platform": "android"}, (f"android#{TOKEN}",)),
        ({"to": TOKEN, "platform": "ios"}, (f"ios#{TOKEN}",)),
    ],
)
def test_a_push_may_be_addressed_to_an_endpoint_a_topic_or_a_device_token_of_an_application(
    changes: dict[str, Any], addressees: tuple[str, ...]
) -> None:
    message = push(**changes)
    assert message.addressees == addressees
    assert message.recipient == changes.get("to", ENDPOINT)


def test_a_device_token_without_a_platform_is_for_the_stages_only_application() -> None:
    message = parse(push_item(to=TOKEN), {"push": push_to(["android"])})
    assert message.addressees == (f"android#{TOKEN}",)


def test_if_the_stages_applications_are_unknown_a_push_may_name_any_platform() -> None:
    for platform in (None, "android", "pigeon"):
        assert parse(push_item(to=TOKEN, platform=platform), CONTRACTS).recipient == TOKEN


def test_the_push_schema_is_the_same_for_all_stages() -> None:
    assert msgspec.json.schema(push_to(["android"])) == msgspec.json.schema(Push)


@pytest.mark.parametrize(
    "changes",
    [
        {"title": ...},
        {"body": ...},
        {"title": ..., "body": ..., "data": {"order": "42"}},
        {"title": ..., "body": ..., "payload_ref": f"s3://{BUCKET}/p-1.json"},
        {"data": {"a": 1, "b": None, "c": [1], "d": {"e": True}}},
        {"title": "two\nlines"},
    ],
)
def test_a_pushs_content_may_be_a_title_a_body_data_or_a_payload(changes: dict[str, Any]) -> None:
    assert push(**changes).kind == "push"


NO_ARN = "to: is not the ARN of a platform endpoint or topic of SNS"
NO_TOKEN = "to: is not a device token; use up to 1024 ASCII characters without spaces"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"to": ...}, "to: is missing; use the ARN of an endpoint or topic, or a device token"),
        ({"to": ""}, NO_TOKEN),
        ({"to": "a b", "platform": "ios"}, NO_TOKEN),
        ({"to": "a\n", "platform": "ios"}, NO_TOKEN),
        ({"to": "x" * 1025, "platform": "ios"}, NO_TOKEN),
        ({"to": [ENDPOINT]}, "to: expected a string"),
        ({"to": "arn:aws:sqs:eu-central-1:123456789012:queue"}, NO_ARN),
        ({"to": "arn:aws:sns:eu-central-1:123456789012:app/GCM/shop-android"}, NO_ARN),
        ({"to": f"{ENDPOINT}/more"}, NO_ARN),
        ({"to": f"{TOPIC}\n"}, NO_ARN),
        ({"to": "arn:"}, NO_ARN),
        ({"platform": "android"}, "platform: is only valid with a device token; remove it"),
        ({"to": TOKEN}, "platform: is missing for a device token; use android or ios"),
        ({"to": TOKEN, "platform": "pigeon"}, "platform: 'pigeon' is unknown; use android or ios"),
        ({"title": ..., "body": ...}, "body: is missing, and so are title and data; set one of them"),
        ({"title": "", "body": "", "data": {}}, "body: is missing"),
        ({"title": 7}, "title: expected a string"),
        ({"data": ["a"]}, "data: expected a map"),
        ({"data": {"aps": {}}}, "data.aps: is a name reserved by Google or Apple"),
        ({"data": {"from": "me"}}, "data.from: "),
        ({"data": {"message_type": "x"}}, "data.message_type: "),
        ({"data": {"collapse_key": "x"}}, "data.collapse_key: "),
        ({"data": {"google.x": "x"}}, "data.google.x: "),
        ({"data": {"gcm.x": "x"}}, "data.gcm.x: "),
    ],
)
def test_an_invalid_push_is_refused_with_the_field_and_the_remedy_in_the_error(
    changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(Invalid) as caught:
        push(**changes)
    assert str(caught.value).startswith(sentence)


def test_a_push_to_a_device_token_is_refused_in_a_stage_without_platform_applications() -> None:
    with pytest.raises(Invalid, match=r"^to: is a device token, and this stage has no platform application"):
        parse(push_item(to=TOKEN), {"push": push_to([])})


def test_each_platform_gets_a_payload_in_its_format() -> None:
    payload = payloads_of(data={"order": 42, "vip": True, "note": None, "price": Decimal("9.90"), "at": "x"})
    strings = {"order": "42", "vip": "true", "note": "null", "price": "9.90", "at": "x"}
    assert payload["GCM"] == {
        "fcmV1Message": {
            "message": {
                "notification": {"title": "Hello", "body": "Your table is ready"},
                "data": strings,
                "android": {"collapse_key": ID, "priority": "high", "notification": {"tag": ID}},
                "apns": {"headers": {"apns-collapse-id": ID}},
            }
        }
    }
    assert payload["APNS"] == {
        "aps": {"alert": {"title": "Hello", "body": "Your table is ready"}},
        "order": 42,
        "vip": True,
        "note": None,
        "price": 9.9,
        "at": "x",
    }
    assert payload["APNS_SANDBOX"] == payload["APNS"]
    assert payload["default"] == "Your table is ready"


def test_nested_push_data_are_sent_to_fcm_as_json_text() -> None:
    payload = payloads_of(data={"lines": [1, {"a": "b"}]})
    text = payload["GCM"]["fcmV1Message"]["message"]["data"]["lines"]
    assert json.loads(text) == [1, {"a": "b"}]
    assert payload["APNS"]["lines"] == [1, {"a": "b"}]


def test_a_push_with_only_a_title_or_only_a_body_is_valid() -> None:
    payload = payloads_of(body=...)
    assert payload["APNS"]["aps"] == {"alert": {"title": "Hello"}}
    assert payload["GCM"]["fcmV1Message"]["message"]["notification"] == {"title": "Hello"}
    assert payload["default"] == "Hello"
    assert payloads_of(title="")["APNS"]["aps"] == {"alert": {"body": "Your table is ready"}}


def test_a_push_with_only_data_wakes_the_app_without_an_alert() -> None:
    payload = payloads_of(title=..., body=..., data={"sync": "1"})
    assert payload["APNS"] == {"aps": {"content-available": 1}, "sync": "1"}
    message = payload["GCM"]["fcmV1Message"]["message"]
    assert message == {
        "data": {"sync": "1"},
        "android": {"collapse_key": ID},
        "apns": {
            "headers": {"apns-collapse-id": ID, "apns-push-type": "background", "apns-priority": "5"},
            "payload": {"aps": {"content-available": 1}},
        },
    }
    assert payload["default"] == '{"sync":"1"}'


def test_a_push_has_payloads_only_for_the_requested_platforms_and_the_default_payload() -> None:
    assert set(payloads_of("APNS")) == {"default", "APNS"}


def test_special_characters_are_unchanged_in_the_payload_of_each_platform() -> None:
    text = 'quo"te \\ \n 👍 \u2028 \ufffe'
    payload = payloads_of(body=text, data={text: text})
    assert payload["APNS"]["aps"]["alert"]["body"] == text
    assert payload["GCM"]["fcmV1Message"]["message"]["data"] == {text: text}
    assert payload["GCM"]["fcmV1Message"]["message"]["notification"]["body"] == text
    assert payload["APNS"][text] == text
    assert payload["APNS_SANDBOX"] == payload["APNS"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"body": "ü" * 2048}, "body"),
        ({"title": "x" * 4096}, "title"),
        ({"data": {"a": "x" * 4096}}, "data"),
        ({"title": "x" * 1000, "body": "x" * 1500, "data": {"a": "x" * 2000}}, "data"),
    ],
)
def test_the_error_about_a_push_too_large_for_a_platform_names_the_largest_part(
    changes: dict[str, Any], field: str
) -> None:
    with pytest.raises(Invalid) as caught:
        payloads_of(**changes)
    assert caught.value.field == field
    assert caught.value.problem.endswith(f"use at most {MAX_BYTES}")


def test_the_size_limit_of_a_push_is_in_bytes_of_the_payload() -> None:
    def size(count: int) -> int:
        return len(json.loads(message_for(push(body="x" * count), ["APNS"]))["APNS"].encode())

    longest = 3000 + MAX_BYTES - size(3000)
    assert size(longest) == MAX_BYTES == 4096  # the limit of FCM and of Apple
    with pytest.raises(Invalid, match=f"a payload of {MAX_BYTES + 1} bytes for APNS"):
        size(longest + 1)


def test_all_attempts_of_a_push_have_one_collapse_id_and_other_messages_have_different_ids() -> None:
    assert identity(push().key) == identity(push(attempt=2, body="changed").key) == ID
    keys = [Key("p-1", "push"), Key("p-2", "push"), Key("p-1", "mail"), Key("1", "push\0p-")]
    assert len({identity(key) for key in keys}) == 4


def test_the_apple_headers_of_a_push_become_sns_message_attributes() -> None:
    assert attributes_of(push(), None) == {
        "AWS.SNS.MOBILE.APNS.COLLAPSE_ID": {"DataType": "String", "StringValue": ID},
        "AWS.SNS.MOBILE.APNS.PUSH_TYPE": {"DataType": "String", "StringValue": "alert"},
        "AWS.SNS.MOBILE.APNS.PRIORITY": {"DataType": "String", "StringValue": "10"},
    }
    silent = attributes_of(push(title=..., body=..., data={"a": "b"}), None)
    assert silent["AWS.SNS.MOBILE.APNS.PUSH_TYPE"]["StringValue"] == "background"
    assert silent["AWS.SNS.MOBILE.APNS.PRIORITY"]["StringValue"] == "5"


def test_the_time_to_live_of_a_push_is_set_for_every_platform() -> None:
    attributes = attributes_of(push(), 60)
    for name in ("FCM", "APNS", "APNS_SANDBOX"):
        assert attributes[f"AWS.SNS.MOBILE.{name}.TTL"] == {"DataType": "String", "StringValue": "60"}
    assert len(attributes) <= 10  # the limit of a subscription with raw delivery
