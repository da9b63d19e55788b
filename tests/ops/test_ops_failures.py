"""`mailroom messages list --status failure`: what failed, the newest first, and why."""

import time
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from mailroom.clock import iso
from mailroom_ops.messages.failed_messages import _masked, masked_error, recipient
from mailroom_ops.messages.filters import bounds
from mailroom_ops.shared.screen import Refused
from tests.support.fuzz.work import assert_linear_time
from tests.support.ops.message import LEDGER, Stage, answer, run
from tests.support.ops.shared import failure

HOUR = 3600.0
FAILURES = ("list", "--status", "failure")


def put_failed_hours_ago(
    stage: Stage, id_: str, hours_ago: float, channel: str = "mail", **more: Any
) -> None:
    """A message that failed so long ago, as the ledger has it."""
    at = time.time() - hours_ago * HOUR
    status = more.pop("status", "failed")
    error = {"code": more.pop("code", "invalid"), "message": more.pop("message", "to: is missing")}
    if field := more.pop("error_field", ""):
        error["field"] = field
    stage.put(
        LEDGER,
        id=id_,
        event_type=channel,
        status=status,
        completedAt=int(at * 1000),
        updatedAt=iso(at),
        error=error,
        **failure(id_, channel, more.pop("filed", status), int(at * 1000)),
        **more,
    )


def ids_of_failures(*words: str) -> list[str]:
    return [each["id"] for each in listed_failures(*words)["messages"]]


def listed_failures(*words: str) -> dict[str, Any]:
    return answer(run(*FAILURES, *words, "--json"))


def test_the_newest_failures_come_first_over_all_channels_and_days(stage: Stage) -> None:
    put_failed_hours_ago(stage, "old", 30)
    put_failed_hours_ago(stage, "new", 0.1, "sms")
    put_failed_hours_ago(stage, "middle", 23)
    put_failed_hours_ago(stage, "second", 0.2, "fax")
    assert ids_of_failures() == ["new", "second", "middle", "old"]
    assert ids_of_failures("--since", "1d") == ["new", "second", "middle"]
    assert ids_of_failures("--since", "30m") == ["new", "second"]
    assert ids_of_failures("--since", "1d", "--until", "30m") == ["middle"]


def test_failures_are_filtered_by_channel_reason_or_domain(stage: Stage) -> None:
    put_failed_hours_ago(stage, "a", 0.1, code="rejected", to="Ada <ada@Old.example>")
    put_failed_hours_ago(stage, "b", 0.2)
    put_failed_hours_ago(stage, "c", 0.3, "sms")
    put_failed_hours_ago(stage, "d", 0.4, "fxa")
    assert ids_of_failures("--channel", "mail") == ["a", "b"]
    assert ids_of_failures("--reason", "invalid") == ["b", "c", "d"]
    assert ids_of_failures("--channel", "fxa") == ["d"]
    assert ids_of_failures("--domain", "OLD.example") == ["a"]


def test_the_option_limit_bounds_the_list_of_failures_and_a_cursor_for_the_rest_is_printed(
    stage: Stage,
) -> None:
    for number in range(5):
        put_failed_hours_ago(stage, f"m-{number}", 0.1 + number / 100)
    result = listed_failures("--limit", "3")
    assert ([each["id"] for each in result["messages"]], result["more"]) == (["m-0", "m-1", "m-2"], True)
    assert listed_failures("--limit", "5")["more"] is False
    assert f"More: --cursor {result['cursor']}" in run(*FAILURES, "--limit", "3").stdout


@pytest.mark.parametrize(
    ("status", "facts", "reason"),
    [
        ("bounced", {"bounce_type": "Permanent"}, "Permanent"),
        ("undelivered", {"error_code": "30003"}, "30003"),
        ("complained", {"complaint_type": "abuse"}, "abuse"),
        ("complained", {}, "complaint"),
    ],
)
def test_a_later_report_of_a_provider_is_listed_with_its_own_status_and_reason(
    stage: Stage, status: str, facts: dict[str, str], reason: str
) -> None:
    put_failed_hours_ago(
        stage, "m-1", 0.1, status=status, code="complaint", message="550 no such user", **facts
    )
    (found,) = listed_failures()["messages"]
    assert (found["status"], found["reason"], found["message"]) == (status, reason, "550 no such user")
    shown = run(*FAILURES).stdout
    assert status in shown
    assert f"{reason}: 550 no such user" in shown


def test_a_failed_mail_to_several_recipients_has_the_domain_of_the_first_one_for_whom_it_failed(
    stage: Stage,
) -> None:
    entries = {"ada@new.example": {"status": "delivered"}, "bob@old.example": {"status": "bounced"}}
    put_failed_hours_ago(stage, "m-1", 0.1, status="bounced", to=[*entries], recipients=entries)
    assert (ids_of_failures("--domain", "old.example"), ids_of_failures("--domain", "new.example")) == (
        ["m-1"],
        [],
    )


def test_the_option_mask_masks_recipients_in_each_column_and_error_of_the_list_of_failures(
    stage: Stage,
) -> None:
    put_failed_hours_ago(
        stage, "m", 0.1, to=["vincent@example.com", "b@example.com"], message="to: 'vincent@x' is none"
    )
    put_failed_hours_ago(stage, "s", 0.2, "sms", to="+16175551234", message="to: '+16175551234' is none")
    for words in ((), ("--json",)):
        shown = run(*FAILURES, "--mask", *words).stdout
        assert "vincent" not in shown
        assert "61755" not in shown
        assert "v***@example.com and 1 more" in shown
        assert "…34" in shown
    full = run(*FAILURES, "--json").stdout
    assert "vincent@example.com" in full
    assert "to: '+16175551234' is none" in full


@pytest.mark.parametrize(
    "said",
    [
        "send_at: 'soon' is not a time; use one like 2026-11-21T09:00:00Z",
        "attachments[0].ref: is not in s3://mailroom-dev-payloads-123456789012-us-east-1/; put it there",
        "template: default/body.html failed: TypeError: 1234567890 is no text",
        "to: is missing; use name@domain.example",
    ],
)
def test_a_text_that_resembles_a_recipient_is_not_masked_in_mailrooms_own_sentence(said: str) -> None:
    assert masked_error("invalid", said) == said


def test_the_list_of_failures_prints_the_faulty_attribute_beside_the_reason(stage: Stage) -> None:
    put_failed_hours_ago(stage, "m", 0.1, error_field="to")
    assert "invalid (to): to: is missing" in run(*FAILURES).stdout


def test_addresses_in_the_text_of_a_provider_are_masked_and_its_code_is_kept(stage: Stage) -> None:
    put_failed_hours_ago(
        stage, "s", 0.2, code="rejected", message="SES answered 400 (1234567): no user bob@example.com"
    )
    (failure,) = listed_failures("--mask")["messages"]
    assert failure["message"] == "SES answered 400 (1234567): no user b***@example.com"


@pytest.mark.parametrize("piece", ["a", "a@", "a.b-", "1 ", "aaaaaaaaa "])
def test_the_time_to_mask_an_error_is_linear_in_its_length(piece: str) -> None:
    """Producers choose parts of it."""
    assert_linear_time(lambda size: partial(_masked, piece * (size // len(piece))), 50_000)


def test_messages_list_exits_with_0_if_no_message_failed(stage: Stage) -> None:
    result = run(*FAILURES)
    assert (result.exit_code, "No messages in dev" in result.stdout) == (0, True)


@pytest.mark.parametrize("typed", ["yesterday", "5y", "2031-01-01"])
def test_the_list_of_failures_refuses_an_invalid_time(stage: Stage, typed: str) -> None:
    result = run(*FAILURES, "--since", typed)
    assert result.exit_code == 2
    assert f"--since {typed}" in result.stderr.replace("'", "")


def test_since_and_until_accept_a_duration_a_date_or_a_time_and_until_includes_its_day() -> None:
    now = datetime(2026, 11, 21, 14, tzinfo=UTC).timestamp()

    def hours(since: str, until: str = "") -> list[float]:
        """How many hours ago the bounds are."""
        return [(now - int(bound) / 1000) / 3_600 for bound in bounds(since, until, now).values()]

    assert hours("24h") == [24]
    assert hours("2026-11-21") == [14]
    assert hours("2026-11-21T14:00:00+01:00") == [1]
    assert hours("", "2026-11-20") == hours("", "14h") == [14]  # the day is included
    assert hours("2026-11-21", " 2026-11-21 ") == [14, -10]
    for since, until in (("2026-11-21T15:00:00", ""), ("2026-11-21", "2026-11-20"), ("", "noon")):
        with pytest.raises(Refused):
            bounds(since, until, now)


@pytest.mark.parametrize(
    ("to", "shown"),
    [
        ("Ada <ada@example.com>", "Ada <a***@example.com>"),
        ("vincent@", "v***@"),
        ("+1 (617) 555-1234", "…34"),
        ("arn:aws:sns:us-east-1:123456789012:endpoint/GCM/app/abcd-ef12", "***ef12"),
        ("cK3xq9Zt1LmN0pQr5sTuVw7yBdFgHjK2", "***HjK2"),
        ("hooks.a-rather-long-name.example.com", "hooks.a-rather-long-name.example.com"),
        ("", ""),
        (None, ""),
    ],
)
def test_recipients_of_every_channel_are_masked(to: str | None, shown: str) -> None:
    assert recipient(to) == shown
