"""The ledger and the mailbox, read for whoever asks."""

from typing import Any

import pytest

from mailroom.ledger_reader import LedgerReader, of_ledger, of_mailbox
from tests.unit.support import LEDGER, MAILBOX, NOW_MS, Aws, item


@pytest.fixture
def reader(aws: Aws) -> LedgerReader:
    return LedgerReader(aws.dynamodb, LEDGER, MAILBOX)


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
    status = of_mailbox(item(to=to, send_at=["soon"]))
    assert (status.status, status.to, status.scheduled_for) == ("ready", None, None)


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
