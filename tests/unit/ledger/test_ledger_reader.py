"""The ledger and the mailbox, read for whoever asks."""

from typing import Any

import pytest

from mailroom.clock import iso
from mailroom.ledger.reader import LedgerReader, of_ledger, of_mailbox
from tests.support.unit.shared import LEDGER, MAILBOX, NOW, NOW_MS, Aws, FakeClock, Item, item


@pytest.fixture
def reader(aws: Aws, clock: FakeClock) -> LedgerReader:
    return LedgerReader(aws.dynamodb, LEDGER, MAILBOX, clock)


def test_every_millisecond_comes_out_as_itself() -> None:
    for millisecond in range(1000):
        moment = NOW_MS + millisecond
        status = of_ledger({"id": "m-1", "event_type": "mail", "status": "sent", "sentAt": moment})
        assert status.times == {"sentAt": f"2026-11-21T09:00:00.{millisecond:03d}Z"}


def test_what_providers_told_stands_apart_from_times() -> None:
    told = {"status": "bounced", "bounce_type": "Permanent", "bouncedAt": NOW_MS, "claim_token": "secret"}
    status = of_ledger({"id": "m-1", "event_type": "mail", **told})
    assert status.details == {"bounce_type": "Permanent"}
    assert status.times == {"bouncedAt": "2026-11-21T09:00:00.000Z"}


@pytest.mark.parametrize("to", [5, None, {"a": 1}, ["a", 5]])
def test_an_item_that_is_wrong_is_ready_all_the_same(to: Any) -> None:
    status = of_mailbox(item(to=to, send_at=["soon"], expires_at="late", ttl="long"), NOW)
    assert (status.status, status.to, status.scheduled_for) == ("ready", None, None)


LONG_AGO = NOW - 90 * 86_400 - 1


@pytest.mark.parametrize(
    "time", [{"send_at": iso(LONG_AGO)}, {"expires_at": iso(LONG_AGO)}, {"ttl": int(LONG_AGO)}]
)
def test_what_is_of_a_time_that_a_ledger_may_have_forgotten_is_not_ready(time: Item) -> None:
    assert of_mailbox(item(**time), NOW).status == "forgotten"
    assert of_mailbox(item(**time), NOW - 1).status == "ready"


def test_a_restored_item_that_the_ledger_does_not_know_is_not_ready() -> None:
    assert of_mailbox(item(restored_id="m-1"), NOW).status == "forgotten"


def test_what_lies_ahead_is_ready(reader: LedgerReader, aws: Aws) -> None:
    aws.put(MAILBOX, **item(send_at=iso(NOW + 60), expires_at=iso(NOW + 120), ttl=int(NOW + 180)))
    assert [each.status for each in reader.find("m-1")] == ["ready"]
    assert [each.status for each in reader.find("m-1", "mail")] == ["ready"]


def test_the_ledger_goes_before_the_mailbox(reader: LedgerReader, aws: Aws) -> None:
    aws.put(MAILBOX, **item())
    aws.put(MAILBOX, **item(event_type="sms"))
    aws.put(LEDGER, id="m-1", event_type="mail", status="sent")
    assert [(each.event_type, each.status) for each in reader.find("m-1")] == [
        ("mail", "sent"),
        ("sms", "ready"),
    ]


def test_a_message_whose_item_is_gone_is_still_known(reader: LedgerReader, aws: Aws) -> None:
    aws.put(LEDGER, id="m-1", event_type="mail", status="sent")
    assert [each.status for each in reader.find("m-1", "mail")] == ["sent"]
    assert reader.item("m-1", "mail") is None
    assert reader.find("m-2") == []


@pytest.mark.parametrize(
    ("send_at", "told"),
    [
        ("0999-01-01T00:00:00Z", "0999-01-01T00:00:00.000Z"),
        ("0001-01-01T00:00:00+14:00", None),
        ("9999-12-31T23:59:59-14:00", None),
    ],
)
def test_a_send_at_of_any_year_leaves_the_status_readable(send_at: str, told: str | None) -> None:
    item = {"id": "m", "event_type": "mail", "send_at": send_at}
    assert of_mailbox(item, NOW).scheduled_for == told
