"""Failures, counted by channel and reason as embedded metrics."""

import json
from typing import Any

import pytest

from mailroom.ledger.items import LedgerChange
from mailroom.outcomes import REASON_CHARACTERS, Failures
from tests.support.unit.consequences import Consequences, change

CHANNELS = ("mail", "fax")
INVALID = {"code": "invalid", "message": "to: is missing"}


def told(old: str | None, new: str, event_type: str = "mail", **attributes: Any) -> LedgerChange:
    before = {"status": old} if old else {}
    return LedgerChange(before, {"id": "m-1", "event_type": event_type, "status": new, **attributes})


def counted(capsys: pytest.CaptureFixture[str], *changes: LedgerChange) -> dict[tuple[str, str], float]:
    failures = Failures(CHANNELS)
    for each in changes:
        failures.add(each)
    failures.write()
    blobs = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return {(each["channel"], each["reason"]): sum(each["Failed"]) for each in blobs}


def test_what_failed_is_counted_by_channel_and_by_its_error_s_code(
    capsys: pytest.CaptureFixture[str],
) -> None:
    changes = [
        told(None, "failed", error=INVALID),
        told("sending", "failed", error={"code": "rejected", "message": "…"}),
        told("sending", "failed", error={"code": "rejected", "message": "…"}),
        told("retrying", "failed", "fax", error={"code": "busy", "message": "…"}),
    ]
    assert counted(capsys, *changes) == {("mail", "invalid"): 1, ("mail", "rejected"): 2, ("fax", "busy"): 1}


@pytest.mark.parametrize("status", ["undelivered", "bounced", "complained"])
def test_what_a_provider_told_later_is_a_reason_of_its_own(
    capsys: pytest.CaptureFixture[str], status: str
) -> None:
    assert counted(capsys, told("sent", status, error={"code": "5.1.1", "message": "…"})) == {
        ("mail", status): 1
    }


@pytest.mark.parametrize("status", ["sending", "scheduled", "retrying", "sent", "delivered", "suppressed"])
def test_nothing_else_is_a_failure(capsys: pytest.CaptureFixture[str], status: str) -> None:
    assert counted(capsys, told("ready", status)) == {}


def test_a_change_that_leaves_the_status_as_it_was_is_not_counted_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert counted(capsys, told("failed", "failed", error=INVALID)) == {}


def test_a_failure_without_a_code_and_one_of_a_very_long_code_are_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = counted(capsys, told(None, "failed"), told(None, "failed", error={"code": "x" * 300}))
    assert found == {("mail", "failed"): 1, ("mail", "x" * REASON_CHARACTERS): 1}


def test_the_metric_stands_under_the_channel_and_under_channel_and_reason(
    capsys: pytest.CaptureFixture[str],
) -> None:
    failures = Failures(CHANNELS)
    failures.add(told(None, "failed", error=INVALID))
    failures.write()
    blob = json.loads(capsys.readouterr().out)
    (directive,) = blob["_aws"]["CloudWatchMetrics"]
    assert directive["Namespace"] == "Mailroom"
    assert directive["Metrics"] == [{"Name": "Failed", "Unit": "Count"}]
    assert [sorted(each) for each in directive["Dimensions"]] == [
        ["service"],
        ["channel"],
        ["channel", "reason"],
    ]


def test_a_batch_of_the_ledger_s_stream_writes_what_failed_in_it(
    outcomes: Consequences, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes.handle(change(status="failed", error=INVALID), change(number=101, status="sent"))
    (line,) = (each for each in capsys.readouterr().out.splitlines() if "CloudWatchMetrics" in each)
    assert (json.loads(line)["channel"], json.loads(line)["Failed"]) == ("fax", [1.0])


@pytest.mark.parametrize("name", ["ada@example.com", "3f2a", "", "café", "x" * 300])
def test_a_channel_that_there_is_not_is_one_metric_whatever_its_name(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert counted(capsys, told(None, "failed", name, error=INVALID)) == {("unknown", "invalid"): 1}
