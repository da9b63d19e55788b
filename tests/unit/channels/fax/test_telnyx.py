"""The Telnyx adapter and a server that responds by a script."""

from base64 import b64encode
from collections.abc import Callable
from typing import Any

import pytest

from mailroom.channels.fax.contract import Delivered, FaxRequest, FaxState, Pending, Undelivered
from mailroom.errors import OutcomeUnknown
from mailroom.message.outcome import Misconfigured, Outcome, Rejected, Sent
from mailroom.providers.telnyx.sender import Telnyx
from tests.support.unit.fax import fax_sender_at
from tests.support.unit.scripted_server import Answer, ScriptedServer, Step, closed, scripted

REQUEST = FaxRequest("+15555550100", "+15555550199", "https://example.com/a.pdf?X-Amz-Signature=1f", "ref/7")
STATE = b64encode(b"ref/7").decode()


def telnyx_at(url: str, quality: str = "fine") -> Telnyx:
    return Telnyx("key", fax_sender_at(url, fax_connection_id="c-1", fax_quality=quality))


def submit_to_telnyx(step: Step, quality: str = "fine") -> tuple[Outcome, ScriptedServer]:
    with scripted(step) as server:
        return telnyx_at(server.url, quality=quality).submit(REQUEST), server


def accepted_fax(**fax: Any) -> Answer:
    return Answer(202, {"data": {"id": "fax-1", "status": "queued", **fax}})


def telnyx_error(status: int, code: str, title: str = "?", pointer: str | None = None) -> Answer:
    error: dict[str, Any] = {"code": code, "title": title, "detail": f"{title}."}
    if pointer is not None:
        error["source"] = {"pointer": pointer}
    return Answer(status, {"errors": [error]})


def fetched(**fax: Any) -> FaxState:
    with scripted(Answer(200, {"data": {"id": "fax-1", **fax}})) as server:
        return telnyx_at(server.url).fetch("fax-1")


def test_a_fax_is_submitted_to_telnyx_in_one_complete_request() -> None:
    outcome, server = submit_to_telnyx(accepted_fax())
    assert outcome == Sent("fax-1")
    (request,) = server.requests
    assert (request.method, request.target) == ("POST", "/v2/faxes")
    assert request.headers["authorization"] == "Bearer key"
    assert request.json == {
        "to": REQUEST.to,
        "from": REQUEST.sender,
        "media_url": REQUEST.media_url,
        "client_state": STATE,
        "connection_id": "c-1",
        "quality": "high",
        "store_media": False,
    }


@pytest.mark.parametrize(
    ("quality", "word"), [("standard", "normal"), ("fine", "high"), ("superfine", "very_high")]
)
def test_each_fax_quality_setting_is_sent_under_the_name_that_telnyx_uses(quality: str, word: str) -> None:
    assert submit_to_telnyx(accepted_fax(), quality=quality)[1].requests[0].json["quality"] == word


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (telnyx_error(401, "10009", "Authentication failed"), Misconfigured),
        (telnyx_error(422, "10016", "Phone number must be in +E.164 format", "/to"), Rejected),
        (telnyx_error(422, "10003", "Invalid URL", "/media_url"), Rejected),
        (telnyx_error(400, "10015", "Bad Request"), Misconfigured),
        (telnyx_error(422, "10016", "Phone number must be in +E.164 format", "/from"), Misconfigured),
        (telnyx_error(422, "10004", "Missing required parameter", "/connection_id"), Misconfigured),
        (telnyx_error(422, "10015", "Bad Request", "/body/quality"), Misconfigured),
        (telnyx_error(422, "10015", "The connection is not active"), Misconfigured),
        (telnyx_error(400, "20012", "Inactive"), Misconfigured),
        (telnyx_error(422, "10002", "Invalid phone number"), Misconfigured),
        (Answer(422, {"errors": [{"code": "10015", "source": {"parameter": "to"}}]}), Rejected),
    ],
)
def test_a_refusal_by_telnyx_means_an_invalid_fax_or_a_misconfiguration(
    answer: Answer, kind: type[Outcome]
) -> None:
    outcome, server = submit_to_telnyx(answer)
    assert isinstance(outcome, kind)
    assert len(server.requests) == 1


def test_a_refusal_by_telnyx_that_names_the_recipient_and_the_sender_means_a_misconfiguration() -> None:
    errors = [
        {"code": "10016", "title": "Bad number", "source": {"pointer": f"/{name}"}} for name in ("to", "from")
    ]
    assert submit_to_telnyx(Answer(422, {"errors": errors}))[0] == Misconfigured(
        "Telnyx answered 422: 10016: Bad number; 10016: Bad number"
    )


@pytest.mark.parametrize(
    "status", ["queued", "initiated", "media.processing", "media.processed", "originated", "sending"]
)
def test_a_fax_in_progress_at_telnyx_is_pending(status: str, log: Callable[[], list[dict[str, Any]]]) -> None:
    assert fetched(status=status, failure_reason=None) == Pending(status)
    assert log() == []


def test_a_fax_that_telnyx_delivered_has_the_state_delivered() -> None:
    assert fetched(status="delivered") == Delivered()
    report = {"page_count": 3, "from": "+1202", "updated_at": "2026-11-21T09:00:10"}
    assert fetched(status="delivered", **report) == Delivered(3, "+1202", "2026-11-21T09:00:10")


def test_an_unknown_telnyx_status_does_not_end_the_fax(log: Callable[[], list[dict[str, Any]]]) -> None:
    assert fetched(status="paused") == Pending("paused")
    (line,) = log()
    assert (line["message"], line["status"], line["provider_id"]) == ("unknown fax status", "paused", "fax-1")


PASSING = """
account_disabled carrier_lost connection_channel_limit_exceeded destination_unreachable
fax_initial_communication_timeout fax_signaling_error file_download_failed media_processing_exception
outbound_profile_channel_limit_exceeded outbound_profile_daily_spend_limit_exceeded receiver_call_dropped
receiver_communication_error receiver_decline receiver_no_response receiver_recovery_on_timer_expire
service_unavailable user_channel_limit_exceeded a_reason_of_tomorrow
"""
"""Reasons of failures that another attempt may not have."""
LASTING = """
destination_invalid destination_not_in_countries_whitelist destination_not_in_service_plan file_format_invalid
file_size_limit_exceeded page_count_limit_exceeded receiver_invalid_number_format receiver_unallocated_number
unverified_destination_not_allowed
"""
"""Reasons of failures that every attempt would have."""


@pytest.mark.parametrize(
    ("reason", "status", "again"),
    [
        *((reason, reason, True) for reason in PASSING.split()),
        *((reason, reason, False) for reason in LASTING.split()),
        ("user_busy", "busy", True),
        ("receiver_no_answer", "no-answer", True),
        ("sender_canceled", "canceled", True),
        (None, "failed", True),
    ],
)
def test_telnyxs_failure_reason_becomes_the_fax_status_and_decides_whether_the_fax_is_tried_again(
    reason: str | None, status: str, again: bool
) -> None:
    state = fetched(status="failed", failure_reason=reason)
    assert isinstance(state, Undelivered)
    assert (state.status, state.again, state.detail) == (status, again, reason or "failed")


@pytest.mark.parametrize(
    ("reason", "fault"),
    [
        ("outbound_profile_daily_spend_limit_exceeded", "day"),
        ("no_outbound_profile", "account"),
        ("account_disabled", "account"),
        ("unverified_origination_number", "account"),
        ("user_busy", "destination"),
        ("a_new_one", None),
    ],
)
def test_telnyxs_failure_reason_shows_whether_the_daily_limit_the_account_or_the_number_is_at_fault(
    reason: str, fault: str | None
) -> None:
    state = fetched(status="failed", failure_reason=reason)
    assert isinstance(state, Undelivered)
    assert state.fault == fault


def test_a_fax_is_fetched_by_telnyxs_fax_id() -> None:
    with scripted(Answer(200, {"data": {"status": "queued"}})) as server:
        telnyx_at(f"{server.url}/telnyx/").fetch("fax/1")
        assert (server.requests[0].method, server.requests[0].target) == ("GET", "/telnyx/v2/faxes/fax%2F1")


def test_the_account_of_a_telnyx_fax_is_its_connection_id() -> None:
    assert telnyx_at(closed()).account == "c-1"


def test_a_fax_at_telnyx_is_cancelled_by_one_request_without_a_body() -> None:
    with scripted(Answer(202, {"data": {"result": "ok"}})) as server:
        telnyx_at(server.url).cancel("fax-1")
        (request,) = server.requests
        assert (request.method, request.target) == ("POST", "/v2/faxes/fax-1/actions/cancel")
        assert (request.body, request.headers["content-length"]) == (b"", "0")
        assert "content-type" not in request.headers


def test_a_cancel_that_telnyx_refuses_raises_an_error() -> None:
    with (
        scripted(telnyx_error(422, "10015", "The fax is over")) as server,
        pytest.raises(OutcomeUnknown, match="over"),
    ):
        telnyx_at(server.url).cancel("fax-1")
