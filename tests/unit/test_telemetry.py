"""Log lines and metrics: enough to follow a message by, and no one's address."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from mailroom.message.message import Key
from mailroom.telemetry import (
    about,
    count,
    count_by,
    impersonal,
    instrumented,
    logger,
    masked,
    metrics,
    quiet,
    record_duration,
    working_on,
)
from tests.support.unit.events import lambda_context
from tests.support.unit.shared import KEY

Log = Callable[[], list[dict[str, Any]]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("vincent@example.com", "v***@example.com"),
        ("to v@example.com now", "to v***@example.com now"),
        ("<vincent.van+gogh@example.com>", "<v***@example.com>"),
        ("a@x.example, bob@y.example", "a***@x.example, b***@y.example"),
        ("o'hara_1@example.com", "o***@example.com"),
        ("jürgen@example.com", "j***@example.com"),
        ("'vincent@example.com' is no address", "'v***@example.com' is no address"),
        ("{'to': '.v@x.example'}", "{'to': '.v***@x.example'}"),
        ("nothing to hide", "nothing to hide"),
        ("at 9 @ the desk", "at 9 @ the desk"),
    ],
)
def test_every_address_in_a_log_line_is_shortened(text: str, expected: str) -> None:
    assert masked(text) == expected


def test_log_lines_do_not_contain_a_full_mail_address(log: Log) -> None:
    logger.info(
        "sent to vincent@example.com",
        extra={"reason": "theo@example.com is blocked", "list": ["jo@x.example"]},
    )
    try:
        int("for vincent@example.com")
    except ValueError:
        logger.exception("failed")
    assert len(log()) == 2
    text = json.dumps(log())
    assert "v***@example.com" in text
    for full in ("vincent@", "theo@", "jo@"):
        assert full not in text


def test_a_log_line_names_only_the_message_that_is_being_handled(log: Log) -> None:
    working_on(KEY)
    logger.info("one")
    working_on(Key("m-2", "sms"))
    logger.warning("two")
    working_on(None)
    logger.info("three")
    assert [(line.get("id"), line.get("event_type")) for line in log()] == [
        ("m-1", "mail"),
        ("m-2", "sms"),
        (None, None),
    ]


def test_the_log_fields_of_a_key_are_its_id_and_event_type() -> None:
    assert about(KEY) == {"id": "m-1", "event_type": "mail"}


def test_the_metrics_of_a_handler_are_written_at_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    @instrumented
    def handler(event: dict[str, Any], _context: Any) -> str:
        count("Sent", 2)
        count("Sent")
        return str(event["x"])

    assert handler({"x": "y"}, lambda_context()) == "y"
    metrics = json.loads(capsys.readouterr().out)
    assert sum(metrics["Sent"]) == 3
    assert metrics["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "Mailroom"


def test_a_handler_without_metrics_succeeds(capsys: pytest.CaptureFixture[str]) -> None:
    @instrumented
    def handler(_event: dict[str, Any], _context: Any) -> str:
        return "done"

    assert handler({}, lambda_context()) == "done"
    assert capsys.readouterr().out == ""


def test_the_log_lines_of_a_handler_contain_the_id_of_the_request(log: Log) -> None:
    @instrumented
    def handler(_event: dict[str, Any], _context: Any) -> None:
        count("Sent")
        logger.info("hello")

    handler({}, lambda_context())
    assert [line["function_request_id"] for line in log()] == ["request-1"]


def test_a_handler_that_raises_an_error_still_writes_its_metrics(
    capsys: pytest.CaptureFixture[str],
) -> None:
    @instrumented
    def handler(_event: dict[str, Any], _context: Any) -> None:
        count("Errors")
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        handler({}, lambda_context())
    assert json.loads(capsys.readouterr().out)["Errors"] == [1.0]


def test_each_of_many_durations_of_a_batch_is_written_once(capsys: pytest.CaptureFixture[str]) -> None:
    seconds = [number / 1000 for number in range(330)]
    record_duration("Took", *seconds[:20])
    record_duration("Took", *seconds[20:])
    metrics.flush_metrics()
    lists = [json.loads(line)["Took"] for line in capsys.readouterr().out.splitlines()]
    assert [value for values in lists for value in values] == [*range(330)]
    assert max(map(len, lists)) == 100, "CloudWatch accepts no longer list"


def test_metrics_are_written_in_parts_that_cloudwatch_accepts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = {f"Metric{number}" for number in range(100)}
    for name in names:
        count(name)
    count("Further")
    (line,) = capsys.readouterr().out.splitlines()
    (written,) = json.loads(line)["_aws"]["CloudWatchMetrics"]
    assert {metric["Name"] for metric in written["Metrics"]} == names
    assert [*metrics.metric_set] == ["Further"]


def test_metrics_are_neither_collected_nor_written_while_they_are_switched_off(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with quiet():
        count("Sent")
        record_duration("Took", 1.0)
        count_by("Failed", 1, {"channel": "mail"})
    assert not metrics.metric_set
    assert capsys.readouterr().out == ""


def test_metrics_are_collected_again_after_they_were_switched_off(
    counted: Callable[[], dict[str, float]],
) -> None:
    with quiet(), quiet():
        count("Sent")
    count("Sent", 2)
    assert counted() == {"Sent": 2}


@pytest.mark.parametrize("before", ["\x0b", "\x00", "\n", "\\", '"', "\\u00", "a\x0b.!"])
def test_a_log_line_with_an_address_after_an_escaped_character_is_valid_json(
    log: Callable[[], list[dict[str, Any]]], before: str
) -> None:
    """A line that is not JSON is invisible to every filter, and so to every alarm."""
    logger.warning("refused", kind=f"{before}vincent@example.com")
    (line,) = log()
    assert line["kind"].endswith("***@example.com")
    assert "incent" not in line["kind"]


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("the list of 2026-11-18", "the list of 2026-11-18"),
        ("at 2026-11-18T13:00:34.000Z", "at 2026-11-18T13:00:34.000Z"),
        ("2026-11-181234567", "…67"),
        ("since 2026-11-18, +1 415 555 0100 calls", "since 2026-11-18, …00 calls"),
        ("4155-55-01 00", "…00"),
        ("2026-11-18 415 555 0100", "2026-…00"),
        ("12026-11-18", "…18"),
    ],
)
def test_a_date_is_not_a_telephone_number_but_a_number_beside_it_is_masked(text: str, masked: str) -> None:
    assert impersonal(text) == masked
