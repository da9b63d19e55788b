"""The contract of a webhook item."""

from typing import Any

import msgspec
import pytest

from mailroom.channels.webhook.contract import Webhook
from mailroom.errors import Invalid
from mailroom.http.url_policy import host_of
from tests.support.unit.webhooks import webhook


def problem_of_webhook(**changes: Any) -> tuple[str, str]:
    with pytest.raises(Invalid) as caught:
        webhook(**changes)
    return caught.value.field, caught.value.problem


@pytest.mark.parametrize("payload", [{"a": [1, None]}, [], {}, "text", 7, 1.5, True, False, None, ""])
def test_a_webhooks_payload_may_be_any_json_value(payload: Any) -> None:
    assert webhook(payload=payload).payload == payload


def test_a_webhook_without_a_payload_is_refused() -> None:
    reason = "is missing; set it to any JSON value, or set payload_ref"
    assert problem_of_webhook(payload=...) == ("payload", reason)


def test_a_webhook_may_have_its_payload_in_the_payload_bucket() -> None:
    message = webhook(payload=..., payload_ref="s3://payloads/w-1")
    assert message.payload is msgspec.UNSET


def test_the_size_limit_of_a_webhooks_payload_applies_to_the_json_text() -> None:
    assert webhook(payload="x" * (256 * 1024 - 2))
    assert problem_of_webhook(payload="é" * (128 * 1024)) == (
        "payload",
        "has 262146 bytes as JSON; use at most 262144",
    )


@pytest.mark.parametrize(
    "url", ["https://Hooks.example", "http://hooks.example:8080/a?b#c", "HTTPS://hooks.example?x"]
)
def test_a_webhooks_recipient_and_message_group_are_the_host_of_its_url(url: str) -> None:
    message = webhook(url=url)
    assert (message.recipient, message.group) == ("hooks.example", "hooks.example")


def test_a_webhooks_message_group_is_not_longer_than_sqs_allows() -> None:
    host = f"{'a' * 60}.{'b' * 60}.{'c' * 60}.example"
    assert webhook(url=f"https://{host}/").group == host[:128]


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://user:secret@Hooks.example:8443/a", "hooks.example"),
        ("https://[2001:DB8::1]:8443/a", "[2001:db8::1]"),
        ("https://hooks.example@evil.example/", "evil.example"),
        ("https:///a", ""),
        ("ftp://hooks.example", ""),
        ("https://bücher.example", ""),
        ("https://a b.example", ""),
        ("https://a.example/ b", ""),
        ("https://a.example\n", ""),
        ("", ""),
    ],
)
def test_the_host_of_a_url_is_in_lower_case_and_is_empty_for_an_invalid_url(url: str, host: str) -> None:
    assert host_of(url) == host


@pytest.mark.parametrize(
    "url", ["", "hooks.example", "ftp://hooks.example/", "https://", "https://a b/", "https:///a"]
)
def test_a_webhook_to_an_invalid_url_is_refused(url: str) -> None:
    assert problem_of_webhook(url=url) == (
        "url",
        "is not an https URL; use one like https://hooks.example.com/path",
    )


def test_a_webhook_without_a_url_or_with_too_long_a_url_is_refused() -> None:
    assert problem_of_webhook(url=...)[1] == "object missing required field url"
    assert problem_of_webhook(url=7) == ("url", "expected a string, got a number")
    assert problem_of_webhook(url="https://a.example/" + "x" * 1983) == (
        "url",
        "has 2001 characters; use at most 2000",
    )


def test_a_webhook_message_with_the_callback_attribute_webhook_id_is_refused() -> None:
    reason = "is reserved for Mailroom; remove it, or put it into the payload"
    assert problem_of_webhook(webhook_id="msg_1") == ("webhook_id", reason)


def test_the_attributes_common_to_all_channels_are_checked_in_webhooks() -> None:
    assert problem_of_webhook(expires_at="soon")[0] == "expires_at"


def test_the_json_schema_of_webhooks_describes_the_attributes_of_a_webhook() -> None:
    schema = msgspec.json.schema(Webhook)["$defs"]["Webhook"]
    assert {"id", "event_type", "url"} <= set(schema["required"])
    assert "any JSON value" in schema["properties"]["payload"]["description"]


def test_a_webhook_item_may_have_attributes_that_are_not_in_the_schema() -> None:
    assert webhook(note="n", retries=3).url.startswith("https://hooks.example/")
