"""A template's variables are bounded wherever a message comes in."""

import json
from typing import Any

import boto3
import pytest

from mailroom.channels.contracts import CONTRACTS
from mailroom.content.payload_attributes import expanded
from mailroom.content.payloads import Payloads
from mailroom.errors import MAX_VARIABLES_BYTES, Invalid
from mailroom.mailbox import MailboxWriter
from mailroom.message.message import encode, parse
from tests.support.unit.shared import BUCKET, Aws, item

REF = f"s3://{BUCKET}/large.json"
WAY_OUT = (
    "but a template may have at most 131072; remove unused attributes, or render it yourself and put "
    "subject, html and text into a payload"
)


def templated(**attributes: Any) -> dict[str, Any]:
    return item(text=..., subject=..., template="welcome", **attributes)


def filled(size: int, **attributes: Any) -> dict[str, Any]:
    """Return a templated message of `size` bytes as JSON."""
    message = templated(story="é", **attributes)
    return {**message, "story": "é" + "x" * (size - len(encode(message).encode()))}


def test_the_largest_variables_are_accepted_and_one_more_character_is_refused_with_a_remedy() -> None:
    largest = filled(MAX_VARIABLES_BYTES)
    parse(largest, CONTRACTS)
    with pytest.raises(Invalid) as caught:
        parse({**largest, "story": largest["story"] + "é"}, CONTRACTS)
    assert str(caught.value) == f"item: has {MAX_VARIABLES_BYTES + 2} bytes, {WAY_OUT}"


def test_a_message_with_its_own_content_may_exceed_the_limit_of_template_variables() -> None:
    parse(item(text="x" * 3 * MAX_VARIABLES_BYTES), CONTRACTS)


def test_the_client_refuses_template_variables_over_the_limit(aws: Aws) -> None:
    mailbox = MailboxWriter(boto3.client("dynamodb"), "mailroom-dev-mailbox")
    with pytest.raises(Invalid, match=r"^item: has 140000 bytes, but a template may have at most"):
        mailbox.entry(filled(140_000))
    mailbox.entry(filled(MAX_VARIABLES_BYTES))
    mailbox.entry(item(text="x" * 140_000))


def put_story(aws: Aws, size: int) -> None:
    body = json.dumps({"story": "x" * (size - len('{"story": ""}'))}).encode()
    aws.s3.put_object(Bucket=BUCKET, Key="large.json", Body=body)


def test_a_payload_over_the_limit_of_template_variables_is_refused_when_checked_and_when_read(
    aws: Aws,
) -> None:
    message, payloads = parse(templated(payload_ref=REF), CONTRACTS), Payloads(aws.s3, BUCKET)
    put_story(aws, MAX_VARIABLES_BYTES)
    payloads.require_all(message)
    assert expanded(payloads, message, REF)["story"]
    put_story(aws, MAX_VARIABLES_BYTES + 1)
    for read in (lambda: payloads.require_all(message), lambda: expanded(payloads, message, REF)):
        with pytest.raises(Invalid) as caught:
            read()
        assert str(caught.value) == f"payload_ref: has {MAX_VARIABLES_BYTES + 1} bytes, {WAY_OUT}"


def test_the_limit_of_template_variables_applies_to_item_and_payload_together(aws: Aws) -> None:
    message, payloads = parse(filled(70_000, payload_ref=REF), CONTRACTS), Payloads(aws.s3, BUCKET)
    aws.s3.put_object(Bucket=BUCKET, Key="large.json", Body=json.dumps({"more": "x" * 70_000}).encode())
    with pytest.raises(Invalid, match="but a template may have at most"):
        parse(expanded(payloads, message, REF), CONTRACTS)


def test_the_payload_of_a_message_with_its_own_content_may_exceed_the_limit_of_template_variables(
    aws: Aws,
) -> None:
    message = parse(item(text=..., subject="Hello", payload_ref=REF), CONTRACTS)
    put_story(aws, 3 * MAX_VARIABLES_BYTES)
    assert expanded(Payloads(aws.s3, BUCKET), message, REF)["story"]
