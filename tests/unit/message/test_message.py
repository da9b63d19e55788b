"""The key and the times of every message, and problems in words that a producer understands."""

import base64
import subprocess
import sys
from decimal import Decimal
from typing import Any

import pytest

from mailroom.channels.contracts import CONTRACTS
from mailroom.errors import Invalid, Malformed
from mailroom.message.message import CampaignStart, Key, encoded, key_of, parse
from tests.support.unit.shared import NOW, item


def problem_of_item(**changes: Any) -> tuple[str, str]:
    """Return the field at fault and the problem of an invalid item."""
    with pytest.raises(Invalid) as caught:
        parse(item(**changes), CONTRACTS)
    assert str(caught.value) == f"{caught.value.field}: {caught.value.problem}"
    return caught.value.field, caught.value.problem


# The key


GIVE = "put the file into the payload bucket, and use {ref, filename, content_type}"


@pytest.mark.parametrize(
    "changes", [{"id": ...}, {"id": ""}, {"id": 5}, {"event_type": ...}, {"event_type": None}]
)
def test_a_mailbox_item_without_a_string_id_and_event_type_is_malformed(changes: dict[str, Any]) -> None:
    with pytest.raises(Malformed, match="is not a message: `id` or `event_type` is missing or not a string"):
        parse(item(**changes), CONTRACTS)


def test_the_key_of_a_mailbox_item_is_read_even_if_other_attributes_are_invalid() -> None:
    assert key_of({"id": "m-1", "event_type": "mail", "to": 5}) == Key("m-1", "mail")


@pytest.mark.parametrize(("name", "bound"), [("id", 2048), ("event_type", 1024)])
def test_an_id_or_event_type_longer_than_a_dynamodb_key_is_malformed(name: str, bound: int) -> None:
    assert getattr(key_of(item(**{name: "ü" * (bound // 2)})), name) == "ü" * (bound // 2)
    with pytest.raises(Malformed, match=f"`{name}` is longer than the {bound} bytes"):
        key_of(item(**{name: "ü" * (bound // 2) + "x"}))


@pytest.mark.parametrize("id_", ["m-1", "run#7/Straße 🎉", "x" * 180, "a?b&c=d"])
def test_an_encoded_message_id_is_valid_in_a_provider_tag_and_decodes_to_the_id(id_: str) -> None:
    correlation = encoded(id_)
    assert base64.urlsafe_b64decode(correlation + "=" * (-len(correlation) % 4)).decode() == id_
    assert correlation.replace("-", "").replace("_", "").isalnum()
    assert len(correlation) <= 256


def test_a_message_id_of_180_bytes_is_valid() -> None:
    assert parse(item(id="ü" * 90), CONTRACTS).id == "ü" * 90


@pytest.mark.parametrize(
    ("id_", "sentence"),
    [
        ("x" * 181, "is 181 bytes long; use at most 180"),
        ("x" * 5000, "is 5000 bytes long; use at most 180"),
        ("ü" * 91, "is 182 bytes long; use at most 180"),
        ("a\nb", "holds control characters; use printable ones"),
        ("a\0", "holds control characters; use printable ones"),
        ("a\u2028b", "holds control characters; use printable ones"),
    ],
)
def test_a_message_id_that_is_too_long_or_has_control_characters_is_refused(id_: str, sentence: str) -> None:
    assert problem_of_item(id=id_) == ("id", sentence)


def test_an_unknown_event_type_is_refused_with_the_list_of_valid_types() -> None:
    channels = ", ".join(CONTRACTS)
    assert problem_of_item(event_type="pigeon") == (
        "event_type",
        f"'pigeon' is not allowed here; use {channels}",
    )


# Times


@pytest.mark.parametrize(
    "text",
    ["2026-11-21T09:00:00Z", "2026-11-21T10:00:00+01:00", "2026-11-21T09:00:00", "2026-11-21T09:00:00.000Z"],
)
def test_send_at_and_expires_at_are_read_with_any_offset_and_as_utc_without_an_offset(text: str) -> None:
    assert parse(item(send_at=text), CONTRACTS).due() == NOW
    expiring = parse(item(expires_at=text), CONTRACTS)
    assert expiring.expired(NOW)
    assert not expiring.expired(NOW - 0.001)


def test_a_message_without_send_at_and_expires_at_is_due_at_once_and_never_expires() -> None:
    message = parse(item(), CONTRACTS)
    assert message.due() is None
    assert not message.expired(NOW * 10)


@pytest.mark.parametrize("field", ["send_at", "expires_at"])
@pytest.mark.parametrize("text", ["tomorrow", "", "2026-13-01T00:00:00Z", "21.11.2026", "1795251600"])
def test_a_send_at_or_expires_at_that_is_not_iso_8601_is_refused(field: str, text: str) -> None:
    assert problem_of_item(**{field: text}) == (
        field,
        f"{text!r} is not an ISO 8601 time; use one like 2026-11-21T09:00:00Z",
    )


@pytest.mark.parametrize("field", ["send_at", "expires_at"])
def test_a_send_at_or_expires_at_with_a_hundred_decimals_is_refused(field: str) -> None:
    name, sentence = problem_of_item(**{field: f"2026-11-21T09:00:00.{'0' * 100}Z"})
    assert (name, "is not an ISO 8601 time" in sentence) == (field, True)


def test_only_part_of_a_long_invalid_time_is_quoted_in_the_error() -> None:
    assert len(problem_of_item(send_at="x" * 10_000)[1]) < 200
    assert "xxxx" in problem_of_item(send_at="x" * 10_000)[1]


@pytest.mark.parametrize("send_at", ["2026-11-22T00:00:00Z", "2026-11-22T00:00:01Z"])
def test_a_message_that_would_expire_before_its_send_at_is_refused(send_at: str) -> None:
    refusal = problem_of_item(send_at=send_at, expires_at="2026-11-22T00:00:00Z")
    assert refusal == ("send_at", "is not before expires_at; the message would expire before it is sent")


def test_a_mailbox_item_whose_ttl_is_before_its_send_at_is_refused() -> None:
    refusal = problem_of_item(send_at="2026-11-22T00:00:00Z", ttl=1_795_251_600)
    assert refusal == ("ttl", "is not after send_at; the item would be deleted before its message is sent")


# Other attributes


@pytest.mark.parametrize("channel", ["mail", "fax"])
def test_a_payload_ref_longer_than_an_s3_url_can_be_is_refused(channel: str) -> None:
    ref = f"s3://{'b' * 63}/{'ü' * 512}"
    fax = {"event_type": "fax", "to": "+16175551234"} if channel == "fax" else {}
    assert parse(item(**fax, payload_ref=ref), CONTRACTS).payload_ref == ref
    assert problem_of_item(**fax, payload_ref=ref + "k") == (
        "payload_ref",
        "has 1094 bytes; an object's s3://bucket/key has at most 1093",
    )


def test_an_unknown_lane_is_refused_with_the_list_of_valid_lanes() -> None:
    assert problem_of_item(lane="fast") == ("lane", "'fast' is not a lane; use normal or bulk")


@pytest.mark.parametrize(
    "url", ["ftp://x.example/", "https://", "https://x.example/a b", "x", "", "https://x\n"]
)
def test_a_callback_url_that_is_not_a_valid_https_url_is_refused(url: str) -> None:
    assert problem_of_item(callback_url=url) == ("callback_url", "is not an https URL; use https://host/path")


@pytest.mark.parametrize(
    ("changes", "field", "sentence"),
    [
        ({"to": 5}, "to", "expected a string or a list, got a number"),
        ({"to": {"a": "b"}}, "to", "expected a string or a list, got a map"),
        ({"to": ["a@example.com", 5]}, "to[1]", "expected a string, got a number"),
        ({"subject": Decimal("1.5")}, "subject", "expected a string, got a number"),
        ({"text": {"body": "Hi"}}, "text", "expected a string, got a map"),
        ({"html": ["Hi"]}, "html", "expected a string, got a list"),
        ({"send_at": 1795251600}, "send_at", "expected a string, got a number"),
        ({"lane": None}, "lane", "expected a string, got nothing"),
        ({"lane": True}, "lane", "expected a string, got true or false"),
        ({"headers": "X: y"}, "headers", "expected a map, got a string"),
        ({"attachments": {}}, "attachments", "expected a list, got a map"),
        ({"attachments": [{"ref": 5}]}, "attachments[0].ref", "expected a string, got a number"),
        ({"attachments": [{}]}, "attachments[0]", f"object missing required field ref; {GIVE}"),
        (
            {"attachments": [{"filename": "a.pdf", "content": "JVBERi0="}]},
            "attachments[0]",
            f"object contains unknown field content; {GIVE}",
        ),
        ({"ttl": "soon"}, "ttl", "expected a number, got a string"),
        ({"ttl": Decimal("1.5")}, "ttl", "expected a whole number, got one with a fraction"),
        ({"attempt": 0}, "attempt", "expected a number >= 1"),
        ({"attempt": 10**9}, "attempt", "expected a number <= 999999999"),
        ({"payload_ref": 1}, "payload_ref", "expected a string, got a number"),
    ],
)
def test_an_attribute_of_the_wrong_type_is_refused_with_its_path_and_the_expected_type(
    changes: dict[str, Any], field: str, sentence: str
) -> None:
    assert problem_of_item(**changes) == (field, sentence)


def test_every_attribute_of_a_mailbox_item_can_be_used_as_a_template_variable() -> None:
    attributes = item(first_name="Vincent", age=Decimal("37"), variables="mine", nested={"a": [1]})
    assert parse(attributes, CONTRACTS).variables == attributes


def test_an_optional_attribute_with_the_value_null_is_treated_as_missing() -> None:
    message = parse(item(cc=None, send_at=None, callback_url=None, topic=None), CONTRACTS)
    assert (message.due(), message.callback_url) == (None, None)


@pytest.mark.process
def test_importing_the_message_contracts_does_not_import_boto3_or_powertools() -> None:
    script = "import sys, mailroom.channels.contracts; print(*(name.split('.')[0] for name in sys.modules))"
    output = subprocess.check_output([sys.executable, "-c", script], env={"PYTHONPATH": "lambdas"}, text=True)
    assert "mailroom" in output.split()
    assert not {"boto3", "botocore", "aws_lambda_powertools"} & {*output.split()}


def test_the_start_of_a_campaigns_run_is_not_a_variable_of_templates() -> None:
    start = {"campaign": "weekly", "run": "r", "start": 7}
    message = parse(item(first_name="Vincent", campaign_start=start), CONTRACTS)
    assert message.variables == item(first_name="Vincent")
    assert message.campaign_start == CampaignStart("weekly", "r", 7)


def test_the_campaign_start_of_a_message_from_a_producer_is_none() -> None:
    assert parse(item(campaign_start=None), CONTRACTS).campaign_start is None
    assert parse(item(), CONTRACTS).campaign_start is None
