"""Contents: what waits is read back byte for byte, and whatever a mailbox can hold fits."""

import random
from base64 import b64encode
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from mailroom.ledger.contents import Contents, Held
from mailroom.ledger.waits import OUTSIDE_WINDOW, Wait
from mailroom.message.message import CampaignStart, Key, encode
from tests.support.unit.dispatching import dispatcher_of, numbered
from tests.support.unit.fakes import Meddler
from tests.support.unit.shared import CONTENTS, KEY, NOW, Aws, FakeClock, item, mail

OTHER = Key("m-1", "sms")


@pytest.fixture
def contents(aws: Aws) -> Contents:
    return Contents(aws.dynamodb, CONTENTS)


def stored_contents(aws: Aws) -> list[Any]:
    return aws.dynamodb.scan(TableName=CONTENTS)["Items"]


def test_the_content_of_a_waiting_message_is_read_back_unchanged(contents: Contents) -> None:
    bodies = {"v-1": '{"text": "ä\\u0000\U0001f600"}', "v-2": "{}"}
    contents.put([(Held(KEY, version), body, NOW) for version, body in bodies.items()])
    assert contents.get([Held(KEY, "v-1"), Held(KEY, "v-2"), Held(OTHER, "v-3")]) == bodies


def test_thirty_contents_are_written_in_two_calls_and_deleted_in_two_calls(aws: Aws) -> None:
    client: Any = Meddler(aws.dynamodb)
    contents = Contents(client, CONTENTS)
    names = [Held(Key(f"m-{number}", "mail"), "v") for number in range(30)]
    contents.put([(name, "{}", NOW) for name in names])
    assert len(stored_contents(aws)) == 30
    contents.delete(names)
    assert (stored_contents(aws), client.names()) == ([], ["batch_write_item"] * 4)


def test_contents_are_read_with_a_consistent_read_so_that_none_appears_to_be_lost(aws: Aws) -> None:
    client: Any = Meddler(aws.dynamodb)
    Contents(client, CONTENTS).get([Held(KEY, "v")])
    ((_, arguments),) = client.calls
    assert arguments["RequestItems"][CONTENTS]["ConsistentRead"]


def test_deleting_one_content_keeps_the_other_contents_and_ignores_a_missing_content(
    contents: Contents,
) -> None:
    contents.put([(Held(KEY, "v-1"), "{}", NOW), (Held(KEY, "v-2"), "{}", NOW)])
    contents.delete([Held(KEY, "v-1"), Held(KEY, "v-0")])
    assert [*contents.get([Held(KEY, "v-1"), Held(KEY, "v-2")])] == ["v-2"]


def test_an_erasure_deletes_all_contents_of_a_message_and_keeps_contents_of_other_messages(
    contents: Contents,
) -> None:
    contents.put([(Held(KEY, f"v-{number}"), "{}", NOW) for number in range(30)])
    contents.put([(Held(OTHER, "v"), "{}", NOW), (Held(Key("m-10", "mail"), "w"), "{}", NOW)])
    assert contents.erase(KEY) == 30
    assert contents.erase(KEY) == 0
    assert {*contents.get([Held(OTHER, "v"), Held(Key("m-10", "mail"), "w")])} == {"v", "w"}


DUE, EXPIRY, DAY = NOW + 3_600, "2026-11-28T09:00:00Z", 86_400


@pytest.mark.parametrize(
    ("attributes", "lines_up", "days"),
    [
        ({}, False, 1 / 24),
        ({}, True, 366 + 1 / 24),
        ({"campaign_start": CampaignStart("spring", "r", 1)}, False, 366 + 1 / 24),
        ({"expires_at": EXPIRY}, False, 1 / 24),
        ({"expires_at": EXPIRY}, True, 7),
        ({"expires_at": EXPIRY, "campaign_start": CampaignStart("spring", "r", 1)}, True, 7),
    ],
)
def test_a_stored_content_expires_a_month_after_the_latest_possible_end_of_its_wait(
    contents: Contents, aws: Aws, attributes: dict[str, Any], days: float, *, lines_up: bool
) -> None:
    wait = Wait(mail(**attributes), OUTSIDE_WINDOW, DUE, "v", lines_up=lines_up)
    contents.put([(Held(KEY, "v"), "{}", wait.ends)])
    assert stored_contents(aws)[0]["ttl"] == {"N": str(int(NOW + (30 + days) * DAY))}


# Sizes

ITEM_BYTES = 400_000
"""Bytes of the largest attribute that an item of the mailbox has room for."""


def letters(first: int, last: int, bytes_each: int = 1) -> str:
    """Random letters that fill an item."""
    return "".join(map(chr, RANDOM.choices(range(first, last), k=ITEM_BYTES // bytes_each)))


RANDOM = random.Random(1)
LARGE: dict[str, Callable[[], Any]] = {
    "text of ASCII": lambda: letters(32, 127),
    "text of two bytes a letter": lambda: letters(0x80, 0x800, 2),
    "text of three bytes a letter": lambda: letters(0x800, 0xD800, 3),
    "text of four bytes a letter": lambda: letters(0x10000, 0x110000, 4),
    "text to escape": lambda: "".join(RANDOM.choices('"\\/\t\n', k=ITEM_BYTES)),
    "numbers": lambda: [Decimal(RANDOM.randrange(10**37, 10**38)) for _ in range(ITEM_BYTES // 22)],
    "small numbers": lambda: [RANDOM.randrange(100) for _ in range(ITEM_BYTES // 3)],
    "flags": lambda: RANDOM.choices([True, False, None], k=ITEM_BYTES // 2),
    "one letter": lambda: "x" * ITEM_BYTES,
}


@pytest.mark.parametrize("kind", LARGE)
def test_the_largest_item_of_a_mailbox_can_be_stored_as_a_content(contents: Contents, kind: str) -> None:
    body = encode(item(id="m" * 180, data=LARGE[kind]()))
    assert len(body) > ITEM_BYTES // 5
    contents.put([(Held(Key("m" * 180, "mail"), "v" * 32), body, NOW)])
    assert contents.get([Held(Key("m" * 180, "mail"), "v" * 32)]) == {"v" * 32: body}


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(lambda: b64encode(RANDOM.randbytes(ITEM_BYTES)).decode(), id="bytes"),
        pytest.param(lambda: letters(1, 128), id="control characters"),
    ],
)
def test_an_item_too_large_to_be_stored_as_a_content_is_refused_before_it_is_queued(
    aws: Aws, clock: FakeClock, data: Callable[[], str]
) -> None:
    assert dispatcher_of(aws, clock).dispatch(numbered(item(data=data()))) == set()
    assert aws.item()["error"]["message"] == (
        "item: is over 380 KB as JSON, even compressed; put the content in the payload bucket"
    )
    assert aws.receive() == []
