"""Faxes from the mailbox, or from the queue itself, to the provider, with what is told of them."""

import time
from typing import Any

import pytest

from tests.support.pipeline.faxes import CROWD, FOREIGN, LOST, MAX_ATTEMPTS, NOT_A_FAX, SHARED, SLOW, Faxed
from tests.support.pipeline.items import UNREADABLE
from tests.support.pipeline.shared import Accepted, Pipeline

SUCCESS = "Fax sent successfully"
LEASE_SECONDS = 10.0
"""Seconds of the local stage: time-out 8, margin 2."""


def one_call(pipeline: Pipeline, id_: str) -> Accepted:
    """The fax's one call, delivered. Fails if there were more or less."""
    (call,) = pipeline.calls(id_)
    row = pipeline.ledger(id_, "fax")
    assert (row["status"], call["status"]) == ("delivered", "delivered"), (row, call)
    assert (row["provider_id"], row["pages"], row["sent_from"]) == (call["id"], 1, call["from"])
    return call


def callbacks_told(pipeline: Pipeline, id_: str, count: int) -> list[tuple[str, str]]:
    """Status and message of so many callbacks, in the order of the attempts; each in the contract's shape."""
    payloads: list[dict[str, Any]] = pipeline.until_told(id_, count)
    for payload in payloads:
        assert payload.keys() - {"field"} == {"fax_id", "status", "message", "timestamp", "timestamp_ms"}
        assert payload["fax_id"] == id_
        assert isinstance(payload["timestamp"], int)
        assert abs(payload["timestamp"] - time.time()) < 300
    payloads.sort(key=lambda each: (each["timestamp_ms"], each["status"] != "tmp_fail", each["message"]))
    return [(each["status"], each["message"]) for each in payloads]


@pytest.mark.usefixtures("faxes")
def test_an_item_is_faxed_once_and_its_callback_reports_the_success(pipeline: Pipeline) -> None:
    call = one_call(pipeline, "simple")
    assert call["media_url"] == "https://example.com/faxes/simple.pdf"
    assert call["from"] == "+12025550123"
    assert call["store_media"] is False
    assert callbacks_told(pipeline, "simple", 1) == [("sent", SUCCESS)]


@pytest.mark.usefixtures("faxes")
def test_a_busy_line_is_tried_again_and_each_attempt_has_a_callback(pipeline: Pipeline) -> None:
    calls = pipeline.calls("busy-twice")
    assert [call["status"] for call in calls] == ["busy", "busy", "delivered"]
    assert callbacks_told(pipeline, "busy-twice", 3) == [
        ("tmp_fail", "Failed to deliver fax (attempt 1 of 3). Fax status: busy"),
        ("tmp_fail", "Failed to deliver fax (attempt 2 of 3). Fax status: busy"),
        ("sent", SUCCESS),
    ]
    row = pipeline.ledger("busy-twice", "fax")
    assert (row["status"], row["attempts"], row["provider_id"]) == ("delivered", 3, calls[-1]["id"])


@pytest.mark.usefixtures("faxes")
def test_a_fax_that_its_provider_cancels_is_tried_again_and_attempts_at_another_provider_count(
    pipeline: Pipeline,
) -> None:
    assert [call["status"] for call in pipeline.calls("moved")] == ["canceled", "delivered"]
    assert callbacks_told(pipeline, "moved", 2) == [
        ("tmp_fail", "Failed to deliver fax (attempt 2 of 3). Fax status: canceled"),
        ("sent", SUCCESS),
    ]


@pytest.mark.usefixtures("faxes")
def test_a_line_that_is_always_busy_is_given_up_after_the_last_attempt(pipeline: Pipeline) -> None:
    assert [call["status"] for call in pipeline.calls("busy-always")] == ["busy"] * MAX_ATTEMPTS
    *_, last = callbacks_told(pipeline, "busy-always", MAX_ATTEMPTS)
    assert last == ("perm_fail", "Failed to deliver fax after 3 tries. Last attempt status: busy")
    row = pipeline.ledger("busy-always", "fax")
    assert (row["status"], row["attempts"], row["error"]["code"]) == ("failed", 3, "busy")


@pytest.mark.usefixtures("faxes")
def test_faxes_that_an_upstream_application_puts_into_the_fax_queue_are_sent_in_their_order(
    pipeline: Pipeline,
) -> None:
    direct, by_hand = one_call(pipeline, "direct"), one_call(pipeline, "by-hand")
    assert direct["created"] < by_hand["created"]
    assert {direct["to"], by_hand["to"]} == {FOREIGN}
    assert (
        callbacks_told(pipeline, "direct", 1) == callbacks_told(pipeline, "by-hand", 1) == [("sent", SUCCESS)]
    )


@pytest.mark.usefixtures("faxes")
def test_a_fax_in_a_wrong_message_group_is_moved_to_the_group_of_its_number_and_sent_once(
    pipeline: Pipeline,
) -> None:
    assert one_call(pipeline, "misgrouped")["to"] == FOREIGN
    pipeline.until_logged(pipeline.output("SendFaxFunctionName"), "moved to its own group", '"misgrouped"')
    assert callbacks_told(pipeline, "misgrouped", 1) == [("sent", SUCCESS)]


@pytest.mark.usefixtures("faxes")
def test_a_fax_that_outlives_its_function_is_resumed_and_sent_once(pipeline: Pipeline) -> None:
    call = one_call(pipeline, "slow")
    sender = pipeline.output("SendFaxFunctionName")
    limit = pipeline.functions.get_function_configuration(FunctionName=sender)["Timeout"]
    assert call["to"] == SLOW
    assert call["ended"] - call["created"] > limit
    pipeline.until_logged(sender, "HandedBack")
    assert callbacks_told(pipeline, "slow", 1) == [("sent", SUCCESS)]


def test_a_fax_with_a_lost_response_is_found_at_the_provider_and_not_sent_again(
    pipeline: Pipeline, faxes: Faxed
) -> None:
    call = one_call(pipeline, "lost")
    assert call["to"] == LOST
    row = pipeline.ledger("lost", "fax")
    assert int(row["completedAt"]) / 1000 - faxes.put_at > LEASE_SECONDS
    pipeline.until_logged(pipeline.output("SendFaxFunctionName"), "an earlier try was accepted", '"lost"')
    assert callbacks_told(pipeline, "lost", 1) == [("sent", SUCCESS)]


@pytest.mark.usefixtures("faxes")
@pytest.mark.parametrize(
    ("id_", "code", "words"),
    [
        ("no-number", "invalid", 'to: has letters ("CALL")'),
        ("refused", "rejected", "not a valid phone number"),
    ],
)
def test_an_invalid_fax_number_fails_at_once_with_a_callback_that_contains_the_reason(
    pipeline: Pipeline, id_: str, code: str, words: str
) -> None:
    assert not pipeline.calls(id_)
    row = pipeline.ledger(id_, "fax")
    assert (row["status"], row["error"]["code"]) == ("failed", code)
    ((status, message),) = callbacks_told(pipeline, id_, 1)
    assert status == "perm_fail"
    assert message.startswith("Failed to deliver fax: ")
    assert words in message


@pytest.mark.usefixtures("faxes")
def test_the_provider_of_a_fax_can_fetch_its_pdf_from_the_payload_bucket(pipeline: Pipeline) -> None:
    call = one_call(pipeline, "stored")
    assert call["media_ok"] is True


def test_a_fax_waits_for_its_send_at(pipeline: Pipeline, faxes: Faxed) -> None:
    assert faxes.due_at <= one_call(pipeline, "due")["created"] < faxes.due_at + 90


@pytest.mark.usefixtures("faxes")
def test_a_line_has_one_fax_at_a_time_and_other_lines_proceed(pipeline: Pipeline) -> None:
    crowd = [one_call(pipeline, id_) for id_ in CROWD]
    assert {call["to"] for call in crowd} == {SHARED}
    assert not [call for call in pipeline.calls() if call["overlaps"]]
    slow = one_call(pipeline, "slow")
    assert any(slow["created"] < call["created"] < slow["ended"] for call in crowd)


@pytest.mark.usefixtures("faxes")
def test_an_invalid_body_is_the_only_dead_letter_of_its_line_and_the_line_continues(
    pipeline: Pipeline,
) -> None:
    assert pipeline.dead_letters(pipeline.output("FaxDlqUrl")) == {NOT_A_FAX}
    assert pipeline.dead_letters(pipeline.output("FaxRetryDlqUrl")) <= {UNREADABLE}
    one_call(pipeline, "behind")
