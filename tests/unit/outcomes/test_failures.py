"""Failures, written by channel and reason as embedded metrics."""

import json
from typing import Any

import pytest

from mailroom.ledger.change import LedgerChange
from mailroom.outcomes import REASON_CHARACTERS, count_failures
from tests.support.unit.consequences import Consequences, ledger_record
from tests.support.unit.fakes import Meddler, client_error, failing
from tests.support.unit.shared import Aws, FakeClock

CHANNELS = ("mail", "fax")
INVALID = {"code": "invalid", "message": "to: is missing"}


def status_change(old: str | None, new: str, event_type: str = "mail", **attributes: Any) -> LedgerChange:
    before = {"status": old} if old else {}
    return LedgerChange(before, {"id": "m-1", "event_type": event_type, "status": new, **attributes})


def failed_metrics(
    capsys: pytest.CaptureFixture[str], *changes: LedgerChange
) -> dict[tuple[str, str], float]:
    count_failures(changes, CHANNELS)
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return {(row["channel"], row["reason"]): sum(row["Failed"]) for row in rows}


def test_failed_messages_are_counted_by_channel_and_error_code(
    capsys: pytest.CaptureFixture[str],
) -> None:
    changes = [
        status_change(None, "failed", error=INVALID),
        status_change("sending", "failed", error={"code": "rejected", "message": "…"}),
        status_change("sending", "failed", error={"code": "rejected", "message": "…"}),
        status_change("retrying", "failed", "fax", error={"code": "busy", "message": "…"}),
    ]
    assert failed_metrics(capsys, *changes) == {
        ("mail", "invalid"): 1,
        ("mail", "rejected"): 2,
        ("fax", "busy"): 1,
    }


@pytest.mark.parametrize("status", ["undelivered", "bounced", "complained"])
def test_failures_that_a_provider_reports_later_are_counted_by_status_instead_of_code(
    capsys: pytest.CaptureFixture[str], status: str
) -> None:
    assert failed_metrics(capsys, status_change("sent", status, error={"code": "5.1.1", "message": "…"})) == {
        ("mail", status): 1
    }


@pytest.mark.parametrize("status", ["sending", "scheduled", "retrying", "sent", "delivered", "suppressed"])
def test_messages_with_other_statuses_are_not_counted_as_failed(
    capsys: pytest.CaptureFixture[str], status: str
) -> None:
    assert failed_metrics(capsys, status_change("ready", status)) == {}


def test_a_failed_message_that_changes_without_a_new_status_is_not_counted_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert failed_metrics(capsys, status_change("failed", "failed", error=INVALID)) == {}


def test_failed_messages_without_an_error_code_or_with_a_very_long_code_are_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    failures = failed_metrics(
        capsys, status_change(None, "failed"), status_change(None, "failed", error={"code": "x" * 300})
    )
    assert failures == {("mail", "failed"): 1, ("mail", "x" * REASON_CHARACTERS): 1}


def test_the_metric_of_failed_messages_has_the_dimensions_channel_and_reason(
    capsys: pytest.CaptureFixture[str],
) -> None:
    count_failures([status_change(None, "failed", error=INVALID)], CHANNELS)
    row = json.loads(capsys.readouterr().out)
    (directive,) = row["_aws"]["CloudWatchMetrics"]
    assert directive["Namespace"] == "Mailroom"
    assert directive["Metrics"] == [{"Name": "Failed", "Unit": "Count"}]
    assert [sorted(names) for names in directive["Dimensions"]] == [
        ["service"],
        ["channel"],
        ["channel", "reason"],
    ]


def test_handling_a_batch_of_the_ledgers_stream_writes_the_metric_of_failed_messages(
    consequences: Consequences, capsys: pytest.CaptureFixture[str]
) -> None:
    consequences.handle(
        ledger_record(status="failed", error=INVALID), ledger_record(number=101, status="sent")
    )
    (line,) = (line for line in capsys.readouterr().out.splitlines() if "CloudWatchMetrics" in line)
    assert (json.loads(line)["channel"], json.loads(line)["Failed"]) == ("fax", [1.0])


def test_a_failed_message_whose_callback_cannot_be_queued_is_counted_once_when_it_is_queued(
    aws: Aws, clock: FakeClock, capsys: pytest.CaptureFixture[str]
) -> None:
    down = failing(*[client_error("InternalError", status=500)] * 2)
    record = ledger_record(status="failed", error=INVALID)
    troubled = Consequences(aws, clock, Meddler(aws.sqs, send_message_batch=down))
    assert troubled.handle(record) == {"100"}
    assert "Failed" not in capsys.readouterr().out
    assert troubled.handle(record) == set()
    assert capsys.readouterr().out.count('"Failed":[1.0]') == 1


@pytest.mark.parametrize("name", ["ada@example.com", "3f2a", "", "café", "x" * 300])
def test_failed_messages_of_all_unknown_channels_are_counted_as_the_channel_unknown(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert failed_metrics(capsys, status_change(None, "failed", name, error=INVALID)) == {
        ("unknown", "invalid"): 1
    }
