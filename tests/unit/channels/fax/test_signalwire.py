"""The SignalWire adapter and a server that responds by a script."""

import base64
from collections.abc import Callable
from typing import Any

import pytest

from mailroom.channels.fax.contract import Delivered, FaxRequest, FaxState, Pending, Undelivered
from mailroom.errors import OutcomeUnknown
from mailroom.message.outcome import Misconfigured, Outcome, Rejected, Sent
from mailroom.providers.signalwire.sender import SignalWire
from tests.support.unit.fax import fax_sender_at
from tests.support.unit.scripted_server import Answer, ScriptedServer, Step, error_of_twilio, scripted

PROJECT = "b3877c40-da60-4998-90ad-b792e98472ac"
FAXES = f"/api/laml/2010-04-01/Accounts/{PROJECT}/Faxes"
REQUEST = FaxRequest("+15555550100", "+15555550199", "https://example.com/a.pdf?X-Amz-Signature=1f", "ref")


def signalwire_at(url: str) -> SignalWire:
    return SignalWire(PROJECT, "token", fax_sender_at(url))


def submit_to_signalwire(step: Step) -> tuple[Outcome, ScriptedServer]:
    with scripted(step) as server:
        return signalwire_at(server.url).submit(REQUEST), server


def fetched(**fax: Any) -> FaxState:
    with scripted(Answer(200, {"sid": "fax-1", **fax})) as server:
        return signalwire_at(server.url).fetch("fax-1")


def test_a_fax_is_submitted_to_signalwire_in_one_complete_request() -> None:
    outcome, server = submit_to_signalwire(Answer(201, {"sid": "fax-1", "status": "queued"}))
    assert outcome == Sent("fax-1")
    (request,) = server.requests
    assert (request.method, request.target) == ("POST", FAXES)
    assert request.form == {
        "To": REQUEST.to,
        "From": REQUEST.sender,
        "MediaUrl": REQUEST.media_url,
        "Quality": "fine",
        "Ttl": "5",
        "StoreMedia": "false",
    }
    assert (
        request.headers["authorization"] == f"Basic {base64.b64encode(f'{PROJECT}:token'.encode()).decode()}"
    )


def test_signalwires_base_url_may_contain_a_path_and_a_final_slash() -> None:
    with scripted(Answer(200, {"sid": "fax-1"})) as server:
        assert signalwire_at(f"{server.url}/signalwire/").submit(REQUEST) == Sent("fax-1")
        assert server.requests[0].path == f"/signalwire{FAXES}"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (error_of_twilio("20003", "Authentication failed", 401), Misconfigured),
        (error_of_twilio("21211", "The 'To' number is not a valid phone number."), Rejected),
        (error_of_twilio(21217, "Phone number does not appear to be valid"), Rejected),
        (error_of_twilio("10000", "MediaUrl can't be blank"), Rejected),
        (error_of_twilio("21211", "Unprocessable", 422), Rejected),
        (error_of_twilio("21620", "Invalid media URL(s)"), Rejected),
        (error_of_twilio("10000", "The argument passed is invalid"), Misconfigured),
        (error_of_twilio("21212", "Phone number is not in the correct format."), Misconfigured),
        (error_of_twilio(21606, "not a number of this account"), Misconfigured),
        (error_of_twilio("10000", "From must be a purchased number"), Misconfigured),
        (error_of_twilio("10000", "Your project is suspended"), Misconfigured),
        (error_of_twilio("10000", "Ttl must be between 5 and 300"), Misconfigured),
        (Answer(422, {"errors": [{"code": "invalid", "detail": "From is not yours"}]}), Misconfigured),
        (Answer(422, {"errors": [{"code": "invalid", "detail": "To is not a number"}]}), Misconfigured),
    ],
)
def test_a_refusal_by_signalwire_means_an_invalid_fax_or_a_misconfiguration(
    answer: Answer, kind: type[Outcome]
) -> None:
    outcome, server = submit_to_signalwire(answer)
    assert isinstance(outcome, kind)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("fax", "state"),
    [
        ({"status": "queued"}, Pending("queued")),
        ({"status": "processing"}, Pending("processing")),
        ({"status": "sending"}, Pending("sending")),
        ({"status": "delivered"}, Delivered()),
        (
            {
                "status": "delivered",
                "num_pages": "3",
                "from": "+1202",
                "date_updated": "2026-11-21T09:00:10Z",
            },
            Delivered("3", "+1202", "2026-11-21T09:00:10Z"),
        ),
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
def test_each_signalwire_status_becomes_a_state_of_the_fax(fax: dict[str, Any], state: FaxState) -> None:
    assert fetched(**fax) == state


def test_an_unknown_signalwire_status_does_not_end_the_fax(log: Callable[[], list[dict[str, Any]]]) -> None:
    assert fetched(status="paused") == Pending("paused")
    (line,) = log()
    assert (line["message"], line["status"], line["provider_id"]) == ("unknown fax status", "paused", "fax-1")


def test_a_fax_is_fetched_by_signalwires_fax_id() -> None:
    with scripted(Answer(200, {"status": "queued"})) as server:
        signalwire_at(server.url).fetch("fax/1")
        assert (server.requests[0].method, server.requests[0].target) == ("GET", f"{FAXES}/fax%2F1")


def test_a_fax_at_signalwire_is_cancelled_by_one_request() -> None:
    with scripted(Answer(200, {"status": "canceled"})) as server:
        signalwire_at(server.url).cancel("fax-1")
        (request,) = server.requests
        assert (request.method, request.target) == ("POST", f"{FAXES}/fax-1")
        assert request.form == {"Status": "canceled"}


def test_a_cancel_that_signalwire_refuses_raises_an_error() -> None:
    with (
        scripted(error_of_twilio("10000", "already in progress")) as server,
        pytest.raises(OutcomeUnknown, match="progress"),
    ):
        signalwire_at(server.url).cancel("fax-1")
