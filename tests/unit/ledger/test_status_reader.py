"""Status of a message, read from the ledger and the mailbox."""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from mailroom.clock import iso
from mailroom.errors import MAX_KEY_BYTES
from mailroom.ledger.ledger import Ledger
from mailroom.ledger.status_reader import LedgerReader, MarkedWait, of_ledger, of_mailbox
from mailroom.ledger.waits import DAY_USED_UP, SEND_AT
from tests.support.unit.shared import (
    KEY,
    LEDGER,
    MAILBOX,
    NOW,
    NOW_MS,
    Aws,
    FakeClock,
    Item,
    claimed,
    item,
    mail,
)
from tests.support.unit.waiting import HOUR, hold


@pytest.fixture
def reader(aws: Aws, clock: FakeClock) -> LedgerReader:
    return LedgerReader(aws.dynamodb, LEDGER, MAILBOX, clock)


def test_times_of_a_message_are_printed_with_exact_milliseconds() -> None:
    for millisecond in range(1000):
        moment = NOW_MS + millisecond
        status = of_ledger({"id": "m-1", "event_type": "mail", "status": "sent", "sentAt": moment})
        assert status.times == {"sentAt": f"2026-11-21T09:00:00.{millisecond:03d}Z"}


def test_a_messages_status_separates_times_from_other_provider_details_and_hides_the_claim_token() -> None:
    facts = {"status": "bounced", "bounce_type": "Permanent", "bouncedAt": NOW_MS, "claim_token": "secret"}
    status = of_ledger({"id": "m-1", "event_type": "mail", **facts})
    assert status.details == {"bounce_type": "Permanent"}
    assert status.times == {"bouncedAt": "2026-11-21T09:00:00.000Z"}


def test_the_status_of_a_message_of_unknown_outcome_names_the_provider_of_its_first_unsettled_try() -> None:
    row: Item = {"id": "m-1", "event_type": "mail", "status": "failed"}
    tries = {f"{NOW_MS + 5} ses/1", f"{NOW_MS} resend for a@b.example"}
    assert of_ledger({**row, "unsettled_tries": tries}).provider == "resend"
    assert of_ledger({**row, "unsettled_tries": {f"{NOW_MS} "}}).provider is None
    assert of_ledger({**row, "unsettled_tries": tries, "provider": "ses"}).provider == "ses"


@pytest.mark.parametrize(
    ("id_", "event_type"),
    [
        *product(("", "x" * (MAX_KEY_BYTES["id"] + 1), "\ud800"), ("mail", None)),
        *product(("m-1",), ("", "x" * (MAX_KEY_BYTES["event_type"] + 1))),
    ],
    ids=lambda text: repr(text)[:12],
)
def test_a_search_for_a_key_that_dynamodb_cannot_store_returns_an_empty_list(
    reader: LedgerReader, id_: str, event_type: str | None
) -> None:
    assert reader.find(id_, event_type) == []


@pytest.mark.parametrize("to", [5, None, {"a": 1}, ["a", 5]])
def test_an_invalid_mailbox_item_without_a_ledger_item_has_the_status_ready(to: Any) -> None:
    status = of_mailbox(item(to=to, send_at=["soon"], expires_at="late", ttl="long"), NOW)
    assert (status.status, status.to, status.scheduled_for) == ("ready", None, None)


LONG_AGO = NOW - 90 * 86_400 - 1


@pytest.mark.parametrize(
    "time", [{"send_at": iso(LONG_AGO)}, {"expires_at": iso(LONG_AGO)}, {"ttl": int(LONG_AGO)}]
)
def test_a_message_older_than_the_ledgers_ttl_has_the_status_forgotten(time: Item) -> None:
    assert of_mailbox(item(**time), NOW).status == "forgotten"
    assert of_mailbox(item(**time), NOW - 1).status == "ready"


def test_a_restored_mailbox_item_without_a_ledger_item_has_the_status_forgotten() -> None:
    assert of_mailbox(item(restored_id="m-1"), NOW).status == "forgotten"


def test_a_mailbox_item_whose_send_at_expires_at_and_ttl_are_in_the_future_has_the_status_ready(
    reader: LedgerReader, aws: Aws
) -> None:
    aws.put(MAILBOX, **item(send_at=iso(NOW + 60), expires_at=iso(NOW + 120), ttl=int(NOW + 180)))
    assert [message.status for message in reader.find("m-1")] == ["ready"]
    assert [message.status for message in reader.find("m-1", "mail")] == ["ready"]


def test_the_status_of_a_message_is_read_from_the_ledger_if_it_has_a_ledger_item(
    reader: LedgerReader, aws: Aws
) -> None:
    aws.put(MAILBOX, **item())
    aws.put(MAILBOX, **item(event_type="sms"))
    aws.put(LEDGER, id="m-1", event_type="mail", status="sent")
    assert [(message.event_type, message.status) for message in reader.find("m-1")] == [
        ("mail", "sent"),
        ("sms", "ready"),
    ]


def test_a_message_whose_mailbox_item_was_deleted_still_has_the_status_of_the_ledger(
    reader: LedgerReader, aws: Aws
) -> None:
    aws.put(LEDGER, id="m-1", event_type="mail", status="sent")
    assert [message.status for message in reader.find("m-1", "mail")] == ["sent"]
    assert reader.item("m-1", "mail") is None
    assert reader.find("m-2") == []


@pytest.mark.parametrize(
    ("send_at", "due"),
    [
        ("0999-01-01T00:00:00Z", "0999-01-01T00:00:00.000Z"),
        ("0001-01-01T00:00:00+14:00", None),
        ("9999-12-31T23:59:59-14:00", None),
    ],
)
def test_the_status_of_a_mailbox_item_can_be_read_even_if_send_at_is_in_an_unsupported_year(
    send_at: str, due: str | None
) -> None:
    item = {"id": "m", "event_type": "mail", "send_at": send_at}
    assert of_mailbox(item, NOW).scheduled_for == due


def test_the_status_of_a_waiting_message_contains_the_reason_and_the_line_of_its_wait(
    reader: LedgerReader, ledger: Ledger, clock: FakeClock
) -> None:
    hold(ledger, mail(lane="bulk"), NOW, DAY_USED_UP, lines_up=True, put_at=NOW - 60)
    (status,) = reader.find("m-1")
    assert status.waits_for == DAY_USED_UP
    assert status.wait == MarkedWait(DAY_USED_UP, "mail", int(NOW) - 60)
    hold(ledger, mail("m-2"))
    (status,) = reader.find("m-2")
    assert (status.wait, status.scheduled_for) == (MarkedWait(SEND_AT, "", int(NOW)), iso(NOW + HOUR))


@pytest.mark.parametrize("end", [claimed, lambda ledger: ledger.cancel(KEY)])
def test_the_status_of_a_claimed_or_cancelled_message_contains_no_reason_for_a_wait(
    reader: LedgerReader, ledger: Ledger, end: Callable[[Ledger], object]
) -> None:
    hold(ledger)
    end(ledger)
    (status,) = reader.find("m-1")
    assert status.waits_for == ""
