"""Dispatch: an invalid item fails with its reason and stops no other item."""

import json
import re
from decimal import Decimal
from typing import Any

import pytest

from mailroom.dispatch.dispatcher import Dispatcher
from mailroom.ledger.ledger import Ledger
from tests.support.unit.dispatching import Counted, Log, dispatcher_of, iso_after, numbered
from tests.support.unit.shared import BUCKET, NOW, Aws, FakeClock, claimed, item

ADDRESS = "is not a mail address; use name@domain.example"
LINE = "holds a line break or control character; use one line of plain text"

START = {"campaign": "weekly", "run": "r", "start": 7}
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no to": ({"to": ...}, "to: is missing; set `to` (or `email`) to one address or a list of them"),
    "a bad address": ({"to": "vincent"}, f"to: 'vincent' {ADDRESS}"),
    "a bad address in a list": ({"to": ["a@example.com", "b"]}, f"to[1]: 'b' {ADDRESS}"),
    "51 recipients": (
        {"to": [f"n{each}@example.com" for each in range(51)]},
        "to: has 51 recipients, including cc and bcc; use at most 50",
    ),
    "a line break in the subject": ({"subject": "a\r\nBcc: b@example.com"}, f"subject: {LINE}"),
    "a line break in the sender": (
        {"from": "post@mailroom.example\nBcc: b@example.com"},
        f"from: 'post@mailroom.example\\nBcc: b@example.com' {LINE}",
    ),
    "a line break in a header": (
        {"headers": {"X-Team": "a\nBcc: b@example.com"}},
        "headers.X-Team: is not a header value; use 1 to 995 printable ASCII characters",
    ),
    "a reserved header": (
        {"headers": {"Bcc": "b@example.com"}},
        "headers.Bcc: is a reserved header; use an attribute of the item, such as subject, or another name",
    ),
    "a template's name that is a path": (
        {"template": "../x", "text": ..., "subject": ...},
        "template: is not a template's name; use letters, digits, - and _",
    ),
    "a send_at in no known format": (
        {"send_at": "tomorrow"},
        "send_at: 'tomorrow' is not an ISO 8601 time; use one like 2026-11-21T09:00:00Z",
    ),
    "a send_at over a year ahead": (
        {"send_at": "2028-01-01T00:00:00Z"},
        "send_at: 2028-01-01T00:00:00Z is over a year ahead; put the item later",
    ),
    "a ttl that may take the item before it is read back": (
        {"send_at": iso_after(3600), "ttl": int(NOW) + 86_400},
        "ttl: 1795338000 is under 15 days after send_at; the item might expire before its message can be "
        "sent after an outage; use 1796551200 or more, or leave it out",
    ),
    "an expires_at in no known format": (
        {"expires_at": "soon"},
        "expires_at: 'soon' is not an ISO 8601 time; use one like 2026-11-21T09:00:00Z",
    ),
    "an expires_at in the past": (
        {"expires_at": "2026-11-21T08:59:59Z"},
        "expires_at: 2026-11-21T08:59:59Z is past; use a future time",
    ),
    "an unknown event_type": ({"event_type": "pigeon"}, "event_type: 'pigeon' is not allowed here; use mail"),
    "a number for a string": ({"subject": 5}, "subject: expected a string, got a number"),
    "a huge number for a string": (
        {"to": Decimal("1E+100")},
        "to: expected a string or a list, got a number",
    ),
    "a map for a string": ({"text": {"a": {"b": 1}}}, "text: expected a string, got a map"),
    "a set of numbers for addresses": ({"to": [1, 2]}, "to[0]: expected a string, got a number"),
    "an id over 180 bytes": ({"id": "ü" * 91}, "id: is 182 bytes long; use at most 180"),
    "an id with a control character": ({"id": "a\nb"}, "id: holds control characters; use printable ones"),
    "a payload_ref outside the bucket": (
        {"payload_ref": "s3://elsewhere/a"},
        f"payload_ref: 's3://elsewhere/a' is outside the payload bucket; use s3://{BUCKET}/key",
    ),
    "an unknown lane": ({"lane": "fast"}, "lane: 'fast' is not a lane; use normal or bulk"),
    "an attempt of its own": ({"attempt": 2}, "attempt: is reserved for Mailroom; rename this attribute"),
    "a start of a run to which the id does not belong": (
        {"id": "weekly#r2#ada", "campaign_start": START},
        "campaign_start: is reserved for Mailroom; rename this attribute",
    ),
    "an attempt with a start of another run": (
        {"attempt": 2, "campaign_start": START},
        "campaign_start: is reserved for Mailroom; rename this attribute",
    ),
    "a start without a number": (
        {"campaign_start": {"campaign": "weekly", "run": "r"}},
        "campaign_start: object missing required field start",
    ),
    "over 1 MiB as JSON": (
        {"text": "\x01" * 200_000},
        "item: is over 1 MiB as JSON; put the content in the payload bucket",
    ),
    "a recipient that fills the item": ({"to": "x" * 390_000}, f"to: '{'x' * 79} {ADDRESS}"),
    "a recipient of spaces": ({"to": " " * 390_000}, f"to: '{' ' * 79} {ADDRESS}"),
    "a header's name that fills the item": (
        {"headers": {"x" * 300_000: "y"}},
        f"headers.{'x' * 126}: is not a header's name; use printable ASCII without a colon or space",
    ),
    "an event_type that fills its key": (
        {"event_type": "p" * 1000},
        f"event_type: '{'p' * 59} is not allowed here; use mail",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_an_invalid_item_fails_with_its_reason_and_does_not_stop_other_items(
    dispatcher: Dispatcher, aws: Aws, counted: Counted, case: str
) -> None:
    changes, sentence = BAD[case]
    bad = item(id="bad", **changes) if "id" not in changes else item(**changes)
    assert dispatcher.dispatch(numbered(item(id="before"), bad, item(id="after"))) == set()
    found = aws.item(bad["id"], bad["event_type"])
    assert found["status"] == "failed"
    field = re.split(r"\W", sentence)[0]
    assert found["error"] == {"code": "invalid", "message": sentence, "field": field}
    assert "completedAt" in found
    assert sorted(each["id"] for each in aws.bodies()) == ["after", "before"]
    assert counted() == {"Dispatched": 2, "Refused": 1}


def test_a_message_in_an_unconfigured_lane_is_refused(aws: Aws, clock: FakeClock) -> None:
    assert dispatcher_of(aws, clock, lanes="normal").dispatch(numbered(item(lane="bulk"))) == set()
    assert aws.item()["error"]["message"] == "lane: 'bulk' is not set up for mail; use normal"


def test_a_refusal_is_logged_by_id_and_field_and_without_the_address(
    dispatcher: Dispatcher, log: Log
) -> None:
    dispatcher.dispatch(numbered(item(cc="theo@example.com\n")))
    (line,) = log()
    assert (line["message"], line["id"], line["event_type"], line["field"]) == (
        "refused",
        "m-1",
        "mail",
        "cc",
    )
    assert "theo@" not in json.dumps(line)


def test_the_ledger_item_of_a_refused_item_contains_its_recipient_and_its_callback_url(
    dispatcher: Dispatcher, aws: Aws
) -> None:
    dispatcher.dispatch(numbered(item(subject=5, callback_url="https://shop.example/told")))
    assert (aws.item()["to"], aws.item()["callback_url"]) == (
        "vincent@example.com",
        "https://shop.example/told",
    )


def test_a_sent_message_stays_sent_if_its_record_is_repeated_after_its_expires_at(
    dispatcher: Dispatcher, aws: Aws, ledger: Ledger, clock: FakeClock
) -> None:
    ledger.complete(claimed(ledger), "ses", "p-1")
    clock.advance(7200)
    dispatcher.dispatch(numbered(item(expires_at=iso_after(3600))))
    assert aws.item()["status"] == "sent"


def test_an_item_without_a_key_is_logged_and_does_not_stop_other_items(
    dispatcher: Dispatcher, aws: Aws, log: Log
) -> None:
    assert dispatcher.dispatch(numbered({"a": 1}, item())) == set()
    assert [line["message"] for line in log()] == ["not a message"]
    assert len(aws.receive()) == 1


def test_an_item_whose_unless_names_a_channel_that_the_stage_lacks_is_refused(
    dispatcher: Dispatcher, aws: Aws
) -> None:
    unless = {"id": "code-17", "event_type": "sms", "status": "delivered"}
    dispatcher.dispatch(numbered(item(send_at=iso_after(3600), unless=[unless])))
    assert aws.item()["error"] == {
        "code": "invalid",
        "message": "unless: event_type 'sms' is not allowed here; use mail",
        "field": "unless",
    }
