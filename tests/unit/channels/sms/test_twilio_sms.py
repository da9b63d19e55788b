"""The Twilio adapter against a server that answers by a script."""

import base64
import json
import logging
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

import pytest

from mailroom.channels.sms.contract import SmsRequest
from mailroom.channels.sms.twilio import TwilioSms
from mailroom.channels.sms.twilio_account import TwilioAccount
from mailroom.errors import OutcomeUnknown
from mailroom.message.outcome import Misconfigured, Outcome, Rejected, Retry, Sent
from tests.support import ROOT
from tests.support.unit.scripted_server import Answer, Break, ScriptedServer, Silence, Step, closed, scripted
from tests.support.unit.shared import NOW, FakeClock
from tests.support.unit.sms import FROM, MEDIA, REQUEST, TO, request

ACCOUNT = TwilioAccount("AC" + "0" * 32, "token")
MESSAGES = f"/2010-04-01/Accounts/{ACCOUNT.account_sid}/Messages.json"
CALLBACKS = "https://api.example/callbacks/twilio"
SPEC = ROOT / "tests" / "support" / "local" / "specs" / "twilio_messages.openapi.json"
CREATED = Answer(201, {"sid": "SM1", "status": "queued", "error_code": None})


def adapter(url: str, seconds: float = 5, **changes: Any) -> TwilioSms:
    known = {
        "account": ACCOUNT,
        "sender": FROM,
        "messaging_service_sid": "",
        "callback_url": CALLBACKS,
        "clock": FakeClock(),
    }
    return TwilioSms(base_url=url, seconds=seconds, **{**known, **changes})


def submitted(step: Step, asked: SmsRequest = REQUEST, **changes: Any) -> tuple[Outcome, ScriptedServer]:
    with scripted(step) as server:
        return adapter(server.url, **changes).submit(asked), server


def form(asked: SmsRequest = REQUEST, **changes: Any) -> dict[str, list[str]]:
    outcome, server = submitted(CREATED, asked, **changes)
    assert isinstance(outcome, Sent)
    return parse_qs(server.requests[0].body.decode(), strict_parsing=True)


def fault(code: object, message: str = "no", status: int = 400) -> Answer:
    return Answer(status, {"code": code, "message": message, "more_info": "", "status": status})


def test_a_message_is_asked_for_once_with_all_that_matters() -> None:
    outcome, server = submitted(CREATED)
    assert outcome == Sent("SM1", {"segments": 1, "encoding": "GSM-7"})
    (asked,) = server.requests
    assert (asked.method, asked.target) == ("POST", MESSAGES)
    assert asked.form == {
        "To": TO,
        "From": FROM,
        "Body": "Your table is ready",
        "StatusCallback": f"{CALLBACKS}/cy0x#rc=3&rp=ct,rt,5xx",
    }
    user = base64.b64encode(f"{ACCOUNT.account_sid}:token".encode()).decode()
    assert asked.headers["authorization"] == f"Basic {user}"


def test_an_api_key_logs_in_for_the_account() -> None:
    keyed = TwilioAccount(ACCOUNT.account_sid, "token", "SK1", "secret")
    _, server = submitted(CREATED, account=keyed)
    assert server.requests[0].target == MESSAGES
    assert server.requests[0].headers["authorization"] == f"Basic {base64.b64encode(b'SK1:secret').decode()}"


def test_a_messaging_service_takes_the_place_of_a_number() -> None:
    asked = form(messaging_service_sid="MG1", sender="")
    assert asked["MessagingServiceSid"] == ["MG1"]
    assert "From" not in asked


def test_without_a_place_for_them_no_status_callbacks_are_asked_for() -> None:
    assert "StatusCallback" not in form(callback_url="")


def test_the_callback_names_the_attempt() -> None:
    assert form(request(reference="cy0x.2"), callback_url=f"{CALLBACKS}/")["StatusCallback"] == [
        f"{CALLBACKS}/cy0x.2#rc=3&rp=ct,rt,5xx"
    ]


def test_media_go_beside_the_text_or_alone() -> None:
    several = form(request(media=(MEDIA, f"{MEDIA}?a=1&b=2")))
    assert several["MediaUrl"] == [MEDIA, f"{MEDIA}?a=1&b=2"]
    assert "Body" in several
    assert "Body" not in form(request(media=(MEDIA,), text=""))


@pytest.mark.parametrize(
    ("left", "valid"), [(0.4, "1"), (-5, "1"), (59.9, "59"), (36_000, "36000"), (90_000, "36000")]
)
def test_a_message_that_expires_waits_at_twilio_no_longer(left: float, valid: str) -> None:
    assert form(request(expires=NOW + left))["ValidityPeriod"] == [valid]


def test_a_message_that_never_expires_says_nothing_of_it() -> None:
    assert "ValidityPeriod" not in form()


def test_every_field_is_one_that_twilio_describes() -> None:
    paths = json.loads(SPEC.read_text())["paths"]
    post = paths["/2010-04-01/Accounts/{AccountSid}/Messages.json"]["post"]
    described = post["requestBody"]["content"]["application/x-www-form-urlencoded"]["schema"]["properties"]
    whole = form(request(media=(MEDIA,), expires=NOW + 60), messaging_service_sid="MG1")
    assert set(whole) | set(form()) <= set(described)


def test_twilios_environment_cannot_send_it_to_another_host(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TWILIO_REGION", "TWILIO_EDGE", "TWILIO_ACCOUNT_SID", "TWILIO_AUTH_TOKEN"):
        monkeypatch.setenv(name, "elsewhere")
    assert isinstance(submitted(CREATED)[0], Sent)


def test_the_client_logs_neither_numbers_nor_texts(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        submitted(CREATED)
        with scripted(Answer(200, {"messages": []})) as server:
            adapter(server.url).find(REQUEST, NOW, ())
    assert caplog.records == []


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (fault(21211), Rejected),
        (fault(21614), Rejected),
        (fault(21610), Rejected),
        (fault(21635), Rejected),
        (fault(21268), Rejected),
        (fault(21618), Rejected),
        (fault(21620), Rejected),
        (fault(21623, status=422), Rejected),
        (fault(21612), Rejected),
        (fault(21617), Rejected),
        (fault(30005), Rejected),
        (fault(30006), Rejected),
        (fault("21211"), Rejected),
        (fault(21610, status=403), Rejected),
        (fault(99999), Misconfigured),
        (fault(99999, status=422), Misconfigured),
        (fault(20003, status=401), Misconfigured),
        (fault(20003), Misconfigured),
        (fault(21608), Misconfigured),
        (fault(21408), Rejected),
        (fault(30034), Misconfigured),
        (fault(21606), Misconfigured),
        (fault(21603), Misconfigured),
        (fault(21212), Misconfigured),
        *((fault(code), Misconfigured) for code in (21659, 21660, 21661, 21663, 21910, 21267, 21657)),
        *((fault(code), Misconfigured) for code in range(21701, 21720)),
        (fault(21712, status=422), Misconfigured),
        (fault(21609), Misconfigured),
        (fault(21624), Misconfigured),
        (fault(99999, status=401), Misconfigured),
        (fault(99999, status=403), Misconfigured),
        (fault(20404, status=404), Misconfigured),
        (fault(20429, status=429), Retry),
        (fault(99999, status=429), Retry),
        (fault(20429), Retry),
        (fault(21730), Retry),
        (fault(21611), Retry),
        (fault(30001), Retry),
        (fault(30008), Retry),
        (Answer(400, b"<html>"), Misconfigured),
        (Answer(403, b""), Misconfigured),
        (Answer(400, {"type": "about:blank", "code": 21211, "detail": "To"}), Rejected),
        (Answer(400, {"type": "about:blank", "code": 21606, "detail": "From"}), Misconfigured),
        (Answer(400, {"code": True, "message": ["odd"]}), Misconfigured),
    ],
)
def test_a_refusal_is_the_messages_fault_or_ours_or_passes(answer: Answer, kind: type[Outcome]) -> None:
    outcome, server = submitted(answer)
    assert isinstance(outcome, kind)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("code", "gone"), [(21614, True), (21635, True), (21610, False), (21211, False), (21612, False)]
)
def test_a_landline_is_gone_and_an_unsubscribed_number_has_opted_out(code: int, gone: bool) -> None:
    outcome, _ = submitted(fault(code))
    assert isinstance(outcome, Rejected)
    assert (outcome.gone, outcome.opted_out) == (gone, code == 21610)


def test_a_reason_says_what_was_answered_and_no_number() -> None:
    outcome, _ = submitted(fault(21211, f"The 'To' number {TO} is not a valid phone number."))
    assert outcome == Rejected(
        "Twilio answered 400 (21211): The 'To' number …00 is not a valid phone number."
    )
    other, _ = submitted(Answer(400, {"code": 21606, "title": "Bad", "detail": "From is not yours"}))
    assert other == Misconfigured("Twilio answered 400 (21606): From is not yours")


@pytest.mark.parametrize("answer", [fault(20429, status=429), fault(30001)])
def test_throttling_says_how_long(answer: Answer) -> None:
    outcome, _ = submitted(Answer(answer.status, answer.body, {"Retry-After": "7"}))
    assert isinstance(outcome, Retry)
    assert outcome.after == 7


@pytest.mark.parametrize(
    "step",
    [
        Answer(500, {"code": 20500, "message": "oops"}),
        Answer(500, {"code": 21211, "message": "a code proves nothing here"}),
        Answer(503, {"code": 20429, "message": "nor here"}),
        Answer(503, b"<html>"),
        Answer(408, {"code": 21211, "message": "too slow"}),
        Answer(307, {}, {"Location": "/elsewhere"}),
        Answer(202, {"sid": "SM1"}),
        Answer(201, {"status": "queued"}),
        Answer(201, {"sid": None}),
        Answer(201, b"not json"),
        Answer(201, {"sid": "SM1"}, cut=True),
        Break(),
    ],
)
def test_what_proves_nothing_is_an_unknown_outcome_and_is_not_asked_again(step: Step) -> None:
    with scripted(step) as server:
        with pytest.raises(OutcomeUnknown):
            adapter(server.url).submit(REQUEST)
        assert len(server.requests) == 1


def test_silence_is_an_unknown_outcome_within_the_time_of_a_submit() -> None:
    with scripted(Silence()) as server, pytest.raises(OutcomeUnknown):
        adapter(server.url, seconds=0.2).submit(REQUEST)


def test_without_a_connection_nothing_was_sent() -> None:
    outcome = adapter(closed()).submit(REQUEST)
    assert isinstance(outcome, Retry)
    assert outcome.reason.startswith("Twilio cannot be reached: ")


Ask = Callable[[TwilioSms], object]


@pytest.mark.parametrize(
    "ask", [lambda api: api.submit(REQUEST), lambda api: api.find(REQUEST, NOW, ())], ids=["submit", "find"]
)
def test_an_unclear_answer_tells_no_number(ask: Ask) -> None:
    with scripted(Answer(500, {"message": f"about {TO}"})) as server, pytest.raises(OutcomeUnknown) as caught:
        ask(adapter(server.url))
    assert TO[3:] not in str(caught.value)
