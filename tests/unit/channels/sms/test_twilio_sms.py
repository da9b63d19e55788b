"""The Twilio adapter and a server that responds by a script."""

import base64
import json
import logging
from typing import Any
from urllib.parse import parse_qs

import pytest

from mailroom.channels.sms.contract import SmsRequest
from mailroom.message.outcome import DayUsedUp, Misconfigured, Outcome, Rejected, Retry, Sent
from mailroom.providers.twilio.account import TwilioAccount
from mailroom.providers.twilio.sender import TwilioSms
from tests.support import ROOT
from tests.support.unit.scripted_server import Answer, ScriptedServer, Step, error_of_twilio, scripted
from tests.support.unit.shared import NOW, FakeClock
from tests.support.unit.sms import FROM, MEDIA, REQUEST, TO, sms_request_with, sms_settings

ACCOUNT = TwilioAccount("AC" + "0" * 32, "token")
MESSAGES = f"/2010-04-01/Accounts/{ACCOUNT.account_sid}/Messages.json"
CALLBACKS = "https://api.example/callbacks/twilio"
SPEC = ROOT / "tests" / "support" / "local" / "specs" / "twilio_messages.openapi.json"
CREATED = Answer(201, {"sid": "SM1", "status": "queued", "error_code": None})


def twilio_at(url: str, account: TwilioAccount = ACCOUNT, **changes: Any) -> TwilioSms:
    sender = sms_settings(sms_base_url=url, **{"callback_url": CALLBACKS, **changes})
    return TwilioSms(account, sender, FakeClock())


def submit_to_twilio(
    step: Step, message: SmsRequest = REQUEST, **changes: Any
) -> tuple[Outcome, ScriptedServer]:
    with scripted(step) as server:
        return twilio_at(server.url, **changes).submit(message), server


def form(message: SmsRequest = REQUEST, **changes: Any) -> dict[str, list[str]]:
    outcome, server = submit_to_twilio(CREATED, message, **changes)
    assert isinstance(outcome, Sent)
    return parse_qs(server.requests[0].body.decode(), strict_parsing=True)


def test_a_text_is_submitted_to_twilio_in_one_complete_request() -> None:
    outcome, server = submit_to_twilio(CREATED)
    assert outcome == Sent("SM1", {"segments": 1, "encoding": "GSM-7"})
    (call,) = server.requests
    assert (call.method, call.target) == ("POST", MESSAGES)
    assert call.form == {
        "To": TO,
        "From": FROM,
        "Body": "Your table is ready",
        "StatusCallback": f"{CALLBACKS}/cy0x#rc=3&rp=ct,rt,5xx",
    }
    user = base64.b64encode(f"{ACCOUNT.account_sid}:token".encode()).decode()
    assert call.headers["authorization"] == f"Basic {user}"


def test_a_request_with_an_api_key_has_the_account_sid_in_its_url() -> None:
    with_key = TwilioAccount(ACCOUNT.account_sid, "token", "SK1", "secret")
    _, server = submit_to_twilio(CREATED, account=with_key)
    assert server.requests[0].target == MESSAGES
    assert server.requests[0].headers["authorization"] == f"Basic {base64.b64encode(b'SK1:secret').decode()}"


def test_a_request_names_the_messaging_service_instead_of_a_sender_number() -> None:
    fields = form(messaging_service_sid="MG1", sms_sender="")
    assert fields["MessagingServiceSid"] == ["MG1"]
    assert "From" not in fields


def test_the_status_callback_url_names_the_attempt_and_is_omitted_without_the_setting() -> None:
    fields = form(sms_request_with(reference="cy0x.2"), callback_url=f"{CALLBACKS}/")
    assert fields["StatusCallback"] == [f"{CALLBACKS}/cy0x.2#rc=3&rp=ct,rt,5xx"]
    assert "StatusCallback" not in form(callback_url="")


def test_a_message_with_media_may_be_sent_with_or_without_a_text() -> None:
    fields = form(sms_request_with(media=(MEDIA, f"{MEDIA}?a=1&b=2")))
    assert fields["MediaUrl"] == [MEDIA, f"{MEDIA}?a=1&b=2"]
    assert "Body" in fields
    assert "Body" not in form(sms_request_with(media=(MEDIA,), text=""))


@pytest.mark.parametrize(
    ("seconds_left", "valid"), [(0.4, "1"), (-5, "1"), (59.9, "59"), (36_000, "36000"), (90_000, "36000")]
)
def test_the_validity_period_at_twilio_ends_when_the_message_expires(seconds_left: float, valid: str) -> None:
    assert form(sms_request_with(expires=NOW + seconds_left))["ValidityPeriod"] == [valid]
    assert "ValidityPeriod" not in form()


def test_every_field_of_a_request_is_in_twilios_specification() -> None:
    paths = json.loads(SPEC.read_text())["paths"]
    post = paths["/2010-04-01/Accounts/{AccountSid}/Messages.json"]["post"]
    described = post["requestBody"]["content"]["application/x-www-form-urlencoded"]["schema"]["properties"]
    fields = form(sms_request_with(media=(MEDIA,), expires=NOW + 60), messaging_service_sid="MG1")
    assert set(fields) | set(form()) <= set(described)


def test_twilios_environment_variables_do_not_change_the_host_of_requests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("TWILIO_REGION", "TWILIO_EDGE", "TWILIO_ACCOUNT_SID", "TWILIO_AUTH_TOKEN"):
        monkeypatch.setenv(name, "elsewhere")
    assert isinstance(submit_to_twilio(CREATED)[0], Sent)


def test_requests_to_twilio_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        submit_to_twilio(CREATED)
        with scripted(Answer(200, {"messages": []})) as server:
            twilio_at(server.url).find(REQUEST, NOW, ())
    assert caplog.records == []


UNDECIDED = (21657, 21659, 21703, 30008)
THE_MESSAGES_OWN = (21211, 21268, 21408, 21608, 21610, 21612, 21614, 21617, 21618, 21620, 21635, 30005, 30006)
OURS = (
    *(20003, 21212, 21267, 21603, 21606, 21609, 21624, 21660, 21661, 21663),
    *(21701, 21702, *range(21704, 21720), 21910, 30034),
)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        *((error_of_twilio(code), Rejected) for code in THE_MESSAGES_OWN),
        (error_of_twilio(21623, status=422), Rejected),
        (error_of_twilio("21211"), Rejected),
        (error_of_twilio(21610, status=403), Rejected),
        *((error_of_twilio(code), Misconfigured) for code in OURS),
        (error_of_twilio(20003, status=401), Misconfigured),
        (error_of_twilio(21712, status=422), Misconfigured),
        (error_of_twilio(20404, status=404), Misconfigured),
        (error_of_twilio(63038), DayUsedUp),
        *((error_of_twilio(code), Retry) for code in (20429, 21611, 21730, 30001)),
        (error_of_twilio(20429, status=429), Retry),
        (Answer(400, {"type": "about:blank", "code": 21211, "detail": "To"}), Rejected),
        (Answer(400, {"type": "about:blank", "code": 21606, "detail": "From"}), Misconfigured),
        (Answer(400, {"code": True, "message": ["a list"]}), Misconfigured),
    ],
)
def test_an_error_of_twilio_decides_between_an_invalid_text_a_wrong_configuration_and_a_retry(
    answer: Answer, kind: type[Outcome]
) -> None:
    outcome, server = submit_to_twilio(answer)
    assert isinstance(outcome, kind)
    assert len(server.requests) == 1


@pytest.mark.parametrize("code", UNDECIDED)
def test_a_twilio_error_that_may_concern_one_destination_or_all_is_an_undecided_rejection(code: int) -> None:
    outcome, _ = submit_to_twilio(error_of_twilio(code))
    assert isinstance(outcome, Rejected)
    assert outcome.undecided


@pytest.mark.parametrize(
    ("code", "is_gone"), [(21614, True), (21635, True), (21610, False), (21211, False), (21612, False)]
)
def test_a_rejection_by_twilio_reports_whether_the_number_is_gone_or_has_opted_out(
    code: int, is_gone: bool
) -> None:
    outcome, _ = submit_to_twilio(error_of_twilio(code))
    assert isinstance(outcome, Rejected)
    assert (outcome.gone, outcome.opted_out, outcome.undecided) == (is_gone, code == 21610, False)


def test_the_reason_of_a_refusal_in_twilios_newer_error_format_is_its_detail() -> None:
    outcome, _ = submit_to_twilio(Answer(400, {"code": 21606, "title": "Bad", "detail": "From is not yours"}))
    assert outcome == Misconfigured("Twilio answered 400 (21606): From is not yours")


def test_a_message_that_twilio_throttles_waits_as_long_as_the_retry_after_header_requests() -> None:
    outcome, _ = submit_to_twilio(Answer(400, error_of_twilio(30001).body, {"Retry-After": "7"}))
    assert isinstance(outcome, Retry)
    assert outcome.after == 7
