"""A person of an audience as an item: the source of each attribute."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from msgspec import structs

from mailroom.campaigns.audience import Recipient
from mailroom.campaigns.definition import Definition, File, Module, Unless
from mailroom.campaigns.drafts import item_of
from mailroom.campaigns.queue_bodies import (
    MAX_CHUNK_BYTES,
    Chunk,
    Next,
    Start,
    chunk_of,
    chunked,
    collect_body,
)
from mailroom.campaigns.runs import canonical, checked, name_of
from mailroom.channels.contracts import CONTRACTS
from mailroom.errors import Invalid, Malformed
from mailroom.message.message import encode, parse
from mailroom.message.unless import Condition

AT = "2026-11-18T13:00:00Z"
WEEKLY = Definition(
    "weekly", "mail", Module(), topic="news", attributes={"template": "weekly", "from": "a@b.example"}
)
ADA = Recipient("17", {"email": "ada@example.com", "first_name": "Ada"})


def item_of_ada(
    recipient: Recipient = ADA, definition: Definition = WEEKLY, **composed: Any
) -> dict[str, Any]:
    chunk = Chunk(definition.name, "2026-11-18T13:00Z", AT, 1, [recipient])
    return item_of(CONTRACTS[definition.channel], definition, chunk, recipient, composed)


def test_a_persons_item_is_a_message_of_the_bulk_lane_with_the_persons_key_in_its_id() -> None:
    item = item_of_ada()
    assert item == {
        "id": "weekly#2026-11-18T13:00Z#17",
        "event_type": "mail",
        "lane": "bulk",
        "topic": "news",
        "template": "weekly",
        "from": "a@b.example",
        "email": "ada@example.com",
        "first_name": "Ada",
    }
    assert parse(item, CONTRACTS).topic == "news"


@pytest.mark.parametrize(
    "column",
    [
        "bcc",
        "cc",
        "headers",
        "attachments",
        "callback_url",
        "payload_ref",
        "from",
        "subject",
        "attempt",
        "ttl",
    ],
)
def test_an_audience_column_named_like_a_mail_attribute_that_campaigns_set_has_no_effect(column: str) -> None:
    item = item_of_ada(Recipient("17", {**ADA.attributes, column: "eve@example.com"}))
    assert item == item_of_ada()


def test_a_misspelt_attribute_is_a_variable_in_an_audience_and_a_mistake_in_a_modules_result() -> None:
    recipient = structs.replace(ADA, attributes={**ADA.attributes, "timezone": "UTC", "expires": "soon"})
    message = parse(item_of_ada(recipient, sendAt="noon"), CONTRACTS)
    assert (message.audience_columns, message.misspelt()) == (["expires"], {"sendAt": "send_at"})


def test_an_audiences_column_named_to_may_contain_the_addresses_of_recipients() -> None:
    assert item_of_ada(Recipient("17", {"to": "ada@example.com"}))["to"] == "ada@example.com"


def test_an_empty_cell_counts_as_missing_for_an_attribute_but_not_for_a_variable() -> None:
    cells = {"locale": "", "time_zone": "", "city": ""}
    assert item_of_ada(Recipient("17", {**ADA.attributes, **cells})) == {**item_of_ada(), "city": ""}


def test_a_campaigns_window_applies_in_the_time_zone_of_each_recipient() -> None:
    hours = {"from": "09:00", "to": "20:00", "zone": "Europe/Berlin"}
    item = item_of_ada(
        Recipient("17", {**ADA.attributes, "time_zone": "Asia/Tokyo", "window": "none"}),
        structs.replace(WEEKLY, window=hours),
    )
    assert (item["window"], item["time_zone"]) == (hours, "Asia/Tokyo")
    assert parse(item, CONTRACTS).time_zone == "Asia/Tokyo"


def test_a_column_named_like_an_attribute_of_another_channel_is_a_variable() -> None:
    assert item_of_ada(Recipient("17", {**ADA.attributes, "url": "https://example.com/ada"}))["url"]


def test_attributes_from_compose_override_settings_and_audience_but_not_id_channel_lane_and_topic() -> None:
    item = item_of_ada(
        first_name="Augusta", template="other", id="mine", event_type="sms", lane="normal", topic="none"
    )
    assert (item["first_name"], item["template"]) == ("Augusta", "other")
    assert {name: item[name] for name in ("id", "event_type", "lane", "topic")} == {
        name: item_of_ada()[name] for name in ("id", "event_type", "lane", "topic")
    }


def test_dates_uuids_and_decimals_that_a_campaigns_module_returns_become_json_values() -> None:
    item = item_of_ada(since=date(2026, 11, 18), id_=UUID(int=7), price=Decimal("12.50"), few=(1, 2))
    assert (item["since"], item["id_"]) == ("2026-11-18", "00000000-0000-0000-0000-000000000007")
    assert (item["price"], item["few"]) == ("12.50", [1, 2])


def test_a_bcc_that_a_module_adds_to_a_mail_with_a_topic_is_refused() -> None:
    with pytest.raises(Invalid, match="a mail with a topic has one recipient"):
        item_of_ada(bcc="eve@example.com")


def test_a_message_expires_a_fixed_time_after_its_run() -> None:
    item = item_of_ada(definition=structs.replace(WEEKLY, expires_after_hours=36.5))
    assert item["expires_at"] == "2026-11-20T01:30:00.000Z"


def test_chunks_of_an_audience_have_a_limited_number_of_recipients_and_of_bytes() -> None:
    people = [Recipient(str(at), {"story": "x" * 100_000}) for at in range(5)] + [Recipient("small")] * 4
    chunks, faults = chunked(people, 3)
    assert [len(each) for each in chunks] == [2, 2, 3, 2]
    assert faults == []
    assert [each for chunk in chunks for each in chunk] == people


def test_a_recipient_too_large_for_a_chunk_is_left_out_and_reported_by_its_key() -> None:
    chunks, (fault,) = chunked([ADA, Recipient("large", {"story": "x" * MAX_CHUNK_BYTES})], 3)
    assert [[each.key for each in chunk] for chunk in chunks] == [["17"]]
    assert str(fault).startswith("entry large: has 2621")


def test_a_recipient_that_json_cannot_represent_is_left_out_and_reported_with_its_key() -> None:
    people = [Recipient(str(number), {"name": name}) for number, name in enumerate(("a", "\ud83d", "c"))]
    chunks, faults = chunked(people, 50)
    assert [[each.key for each in chunk] for chunk in chunks] == [["0", "2"]]
    assert [str(each) for each in faults] == [
        "entry 1: holds half of a surrogate pair, or too many levels of lists and objects; correct it"
    ]


def test_an_empty_page_makes_no_chunk() -> None:
    assert chunked([], 3) == ([], [])


def test_the_queue_message_of_a_schedule_starts_the_run_that_is_named_by_the_scheduled_time() -> None:
    body = '{"campaign": "weekly", "scheduled_at": "2026-11-18T14:00:07+01:00"}'
    assert collect_body(body) == Start(
        "weekly", "2026-11-18T14:00:07+01:00", "2026-11-18T13:00Z", "2026-11-18T14:00:07+01:00"
    )


def test_the_start_of_a_run_can_be_read_from_a_dead_letter_of_eventbridge() -> None:
    body = json.dumps({"campaign": "weekly", "scheduled_at": AT})
    wrapped = json.dumps({"QueueUrl": "https://sqs/collect", "MessageBody": body})
    assert collect_body(wrapped) == collect_body(body)


def test_pages_and_chunks_are_unchanged_after_encoding_and_decoding() -> None:
    page = Next("weekly", "r", "s", 7, {"offset": 12, "header": ["a", "b"]})
    assert collect_body(encode(page)) == page
    person = Recipient("1", {"n": 1, "none": None, "deep": {"list": [True, "x"]}})
    chunk = Chunk("weekly", "r", AT, 1, [person])
    assert chunk_of(encode(chunk)) == chunk


@pytest.mark.parametrize("name", ["a#b", "", "x" * 41, "two words", "-x", "ü"])
def test_a_run_name_that_cannot_be_part_of_a_message_id_is_refused(name: str) -> None:
    with pytest.raises(Malformed):
        checked(name)


@pytest.mark.parametrize("wrong", [{"run": ""}, {"run": "x" * 41}, {"scheduled_at": "soon"}, {"start": "s"}])
def test_a_chunk_or_a_page_with_an_invalid_run_time_or_start_is_malformed(wrong: dict[str, str]) -> None:
    """Waiting does not correct such items: they are dead letters at once."""
    chunk = {"campaign": "weekly", "run": "r", "scheduled_at": AT, "start": 1, "recipients": [], **wrong}
    with pytest.raises(Malformed):
        chunk_of(json.dumps(chunk))
    if "run" in wrong:
        with pytest.raises(Malformed):
            collect_body(json.dumps({"campaign": "weekly", "start": "s", "page": 1, **wrong}))


@pytest.mark.parametrize(
    "spelling", ["2026-11-18T13:00Z", "2026-11-18T13:00:00Z", "2026-11-18T14:00+01:00", "20261118T130000Z"]
)
def test_all_spellings_of_a_time_name_the_same_run(spelling: str) -> None:
    assert canonical(spelling) == "2026-11-18T13:00Z"
    body = json.dumps({"campaign": "weekly", "scheduled_at": AT, "run": spelling, "start": "s"})
    assert collect_body(body) == Start("weekly", AT, "2026-11-18T13:00Z", "s")


@pytest.mark.parametrize("name", ["second", "20261118", "T-shirts"])
def test_a_run_name_that_is_not_a_time_is_used_unchanged(name: str) -> None:
    assert canonical(name) == name


def test_the_name_of_a_scheduled_run_is_the_minute_of_its_time_in_utc() -> None:
    assert name_of("2026-03-29T02:30:59.5+02:00") == "2026-03-29T00:30Z"
    assert checked(name_of(AT)) == "2026-11-18T13:00Z"


PUSHED = structs.replace(WEEKLY, unless=Unless("push_id", "push", ("sent",)))


def test_a_column_with_another_messages_id_becomes_a_condition_that_is_checked_at_the_runs_time() -> None:
    item = item_of_ada(Recipient("17", {**ADA.attributes, "push_id": "push-17", "unless": "x"}), PUSHED)
    assert item["unless"] == {"id": "push-17", "event_type": "push", "status": ["sent"]}
    assert item["send_at"] == AT
    assert parse(item, CONTRACTS).conditions == (Condition("push-17", "push", ["sent"]),)


def test_the_key_column_may_contain_the_ids_of_the_messages_that_a_condition_refers_to() -> None:
    unless = Unless("id", "push", ("sent",))
    by_id = structs.replace(PUSHED, audience=File("s3://bucket/people.csv", "id"), unless=unless)
    assert item_of_ada(ADA, by_id)["unless"]["id"] == "17"


@pytest.mark.parametrize("empty", [{}, {"push_id": ""}, {"push_id": None}])
def test_a_row_without_another_messages_id_gets_its_message_without_a_condition(
    empty: dict[str, Any],
) -> None:
    assert (
        not {"unless", "send_at"} & item_of_ada(Recipient("17", {**ADA.attributes, **empty}), PUSHED).keys()
    )


@pytest.mark.parametrize(
    ("send_at", "stands"),
    [
        ("2026-11-18T15:00:00Z", "2026-11-18T15:00:00Z"),
        (datetime(2026, 11, 18, 15, tzinfo=UTC), "2026-11-18T15:00:00+00:00"),
        (None, AT),
    ],
)
def test_a_later_send_at_that_compose_returns_is_kept_although_the_message_has_a_condition(
    send_at: Any, stands: str
) -> None:
    person = Recipient("17", {**ADA.attributes, "push_id": 7})
    assert item_of_ada(person, PUSHED, send_at=send_at)["send_at"] == stands
