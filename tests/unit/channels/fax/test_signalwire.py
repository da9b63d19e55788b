"""The SignalWire adapter against a server that answers by a script."""

import base64
import logging
from collections.abc import Callable
from typing import Any

import pytest

from mailroom.channels.fax.contract import Delivered, FaxRequest, FaxState, Pending, Undelivered
from mailroom.channels.fax.signalwire import SignalWire
from mailroom.errors import OutcomeUnknown
from mailroom.message.outcome import Misconfigured, Outcome, Rejected, Retry, Sent
from tests.support.unit.scripted_server import Answer, Break, ScriptedServer, Silence, Step, nobody, scripted
from tests.support.unit.shared import NOW

PROJECT = "b3877c40-da60-4998-90ad-b792e98472ac"
FAXES = f"/api/laml/2010-04-01/Accounts/{PROJECT}/Faxes"
REQUEST = FaxRequest("+15555550100", "+15555550199", "https://example.com/a.pdf?X-Amz-Signature=1f", "ref")


def adapter(url: str, seconds: float = 5) -> SignalWire:
    return SignalWire(PROJECT, "token", base_url=url, ttl_minutes=5, quality="fine", seconds=seconds)


def submitted(step: Step) -> tuple[Outcome, ScriptedServer]:
    with scripted(step) as server:
        return adapter(server.url).submit(REQUEST), server


def fault(code: object, message: str, status: int = 400) -> Answer:
    return Answer(status, {"code": code, "message": message, "more_info": "", "status": status})


def fetched(**fax: Any) -> FaxState:
    with scripted(Answer(200, {"sid": "fax-1", **fax})) as server:
        return adapter(server.url).fetch("fax-1")


def test_a_fax_is_asked_for_once_with_all_that_matters() -> None:
    outcome, server = submitted(Answer(201, {"sid": "fax-1", "status": "queued"}))
    assert outcome == Sent("fax-1")
    (asked,) = server.asked
    assert (asked.method, asked.target) == ("POST", FAXES)
    assert asked.form == {
        "To": REQUEST.to,
        "From": REQUEST.sender,
        "MediaUrl": REQUEST.media_url,
        "Quality": "fine",
        "Ttl": "5",
        "StoreMedia": "false",
    }
    assert asked.headers["authorization"] == f"Basic {base64.b64encode(f'{PROJECT}:token'.encode()).decode()}"


def test_a_base_url_may_have_a_path_and_a_slash_at_its_end() -> None:
    with scripted(Answer(200, {"sid": "fax-1"})) as server:
        assert adapter(f"{server.url}/signalwire/").submit(REQUEST) == Sent("fax-1")
        assert server.asked[0].path == f"/signalwire{FAXES}"


def test_twilios_environment_cannot_send_it_to_another_host(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TWILIO_REGION", "TWILIO_EDGE", "TWILIO_ACCOUNT_SID", "TWILIO_AUTH_TOKEN"):
        monkeypatch.setenv(name, "elsewhere")
    assert submitted(Answer(201, {"sid": "fax-1"}))[0] == Sent("fax-1")


def test_the_client_logs_neither_numbers_nor_urls(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        submitted(Answer(201, {"sid": "fax-1"}))
        with scripted(Answer(200, {"faxes": []})) as server:
            adapter(server.url).find(REQUEST.to, REQUEST.reference, NOW)
    assert caplog.records == []


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (fault("20429", "Too many requests", 429), Retry),
        (fault("20003", "Authentication failed", 401), Misconfigured),
        (fault("4001", "Insufficient funds", 402), Misconfigured),
        (fault("20005", "Account not active", 403), Misconfigured),
        (fault("20404", "Not found", 404), Misconfigured),
        (fault("21211", "The 'To' number is not a valid phone number."), Rejected),
        (fault(21217, "Phone number does not appear to be valid"), Rejected),
        (fault("10000", "MediaUrl can't be blank"), Rejected),
        (fault("21211", "Unprocessable", 422), Rejected),
        (fault("21620", "Invalid media URL(s)"), Rejected),
        (fault("10000", "The argument passed is invalid"), Misconfigured),
        (fault("99999", "Nobody knows this one"), Misconfigured),
        (fault("21212", "Phone number is not in the correct format."), Misconfigured),
        (fault(21606, "not a number of this account"), Misconfigured),
        (fault("10000", "From must be a purchased number"), Misconfigured),
        (fault("10000", "Your project is suspended"), Misconfigured),
        (fault("10000", "Ttl must be between 5 and 300"), Misconfigured),
        (Answer(422, {"errors": [{"code": "invalid", "detail": "From is not yours"}]}), Misconfigured),
        (Answer(422, {"errors": [{"code": "invalid", "detail": "To is not a number"}]}), Misconfigured),
        (Answer(400, b"<html>"), Misconfigured),
        (Answer(403, b""), Misconfigured),
    ],
)
def test_a_refusal_is_the_messages_fault_or_ours(answer: Answer, kind: type[Outcome]) -> None:
    outcome, server = submitted(answer)
    assert isinstance(outcome, kind)
    assert len(server.asked) == 1


def test_a_reason_says_what_was_answered_and_no_number() -> None:
    outcome, _ = submitted(fault("21211", "The 'To' number +15555550100 is not a valid phone number."))
    assert outcome == Rejected(
        "SignalWire answered 400 (21211): The 'To' number …00 is not a valid phone number."
    )


def test_throttling_says_how_long() -> None:
    outcome, _ = submitted(Answer(429, {"message": "Too many requests"}, {"Retry-After": "7"}))
    assert outcome == Retry("SignalWire answered 429: Too many requests", after=7)


@pytest.mark.parametrize(
    "step",
    [
        Answer(500, {"message": "oops"}),
        Answer(503, b"<html>"),
        Answer(301, headers={"Location": "/elsewhere"}),
        Answer(201, b"<html>"),
        Answer(200, {"status": "queued"}),
        Answer(201, {"sid": "fax-1"}, cut=True),
        Break(),
    ],
    ids=["500", "503", "301", "no JSON", "no sid", "cut", "broken"],
)
def test_an_answer_that_proves_nothing_raises_and_the_fax_is_asked_for_once(step: Step) -> None:
    with scripted(step) as server:
        with pytest.raises(OutcomeUnknown):
            adapter(server.url).submit(REQUEST)
        assert len(server.asked) == 1


def test_no_answer_in_time_raises_and_the_fax_is_asked_for_once() -> None:
    with scripted(Silence()) as server:
        with pytest.raises(OutcomeUnknown):
            adapter(server.url, seconds=0.2).submit(REQUEST)
        assert len(server.asked) == 1


def test_without_a_connection_nothing_went_out() -> None:
    outcome = adapter(nobody()).submit(REQUEST)
    assert outcome == Retry("SignalWire cannot be reached: Connection refused")


@pytest.mark.parametrize(
    ("fax", "state"),
    [
        ({"status": "queued"}, Pending("queued")),
        ({"status": "processing"}, Pending("processing")),
        ({"status": "sending"}, Pending("sending")),
        ({"status": "delivered"}, Delivered()),
        ({"status": "busy"}, Undelivered("busy", again=True)),
        ({"status": "no-answer"}, Undelivered("no-answer", again=True)),
        ({"status": "canceled"}, Undelivered("canceled", again=True)),
        (
            {"status": "failed", "error_code": 11200, "error_message": "no media at https://a.example/b?c=d"},
            Undelivered("failed", again=True, detail="11200: no media at (URL)"),
        ),
        ({"status": "failed", "error_code": None}, Undelivered("failed", again=True)),
    ],
)
def test_a_status_tells_how_the_fax_stands(fax: dict[str, Any], state: FaxState) -> None:
    assert fetched(**fax) == state


def test_an_unknown_status_never_ends_a_fax(log: Callable[[], list[dict[str, Any]]]) -> None:
    assert fetched(status="paused") == Pending("paused")
    (line,) = log()
    assert (line["message"], line["status"], line["provider_id"]) == ("unknown fax status", "paused", "fax-1")


def test_a_fax_is_fetched_by_its_id_alone() -> None:
    with scripted(Answer(200, {"status": "queued"})) as server:
        adapter(server.url).fetch("fax/1")
        assert (server.asked[0].method, server.asked[0].target) == ("GET", f"{FAXES}/fax%2F1")


@pytest.mark.parametrize("step", [Answer(404), Answer(500), Answer(200, b"?"), Answer(200, {}), Break()])
def test_what_goes_wrong_in_a_fetch_says_nothing_of_the_fax(step: Step) -> None:
    with scripted(step) as server, pytest.raises(OutcomeUnknown):
        adapter(server.url).fetch("fax-1")


def test_a_cancel_is_one_request() -> None:
    with scripted(Answer(200, {"status": "canceled"})) as server:
        adapter(server.url).cancel("fax-1")
        (asked,) = server.asked
        assert (asked.method, asked.target, asked.form) == (
            "POST",
            f"{FAXES}/fax-1",
            {"Status": "canceled"},
        )


def test_a_cancel_that_is_refused_raises() -> None:
    with (
        scripted(fault("10000", "already in progress")) as server,
        pytest.raises(OutcomeUnknown, match="progress"),
    ):
        adapter(server.url).cancel("fax-1")
