"""Texts that people send to a number at Twilio: signed keywords are queued, and no text gets a reply."""

import json

import pytest

from mailroom.errors import InvalidRequest, NotSent, OutcomeUnknown
from mailroom.providers.keywords import KeywordText
from mailroom.providers.twilio.account import TwilioAccount
from mailroom.providers.twilio.callbacks import message_created
from tests.support.unit.feedback_callbacks import ACCOUNT, TOKEN, CallbacksDoor, inbound_text, sign
from tests.support.unit.feedback_words import NUMBER, OURS, SID, items_of, malformed_words
from tests.support.unit.post import Counted, Log
from tests.support.unit.scripted_server import Answer, scripted
from tests.support.unit.shared import NOW, NOW_MS, FakeClock

OTHER = "SM" + "f" * 32


@pytest.fixture
def inbound_texts(clock: FakeClock) -> CallbacksDoor:
    door = CallbacksDoor(clock)
    door.created = {SID: NOW - 60, OTHER: NOW - 30}
    return door


def test_a_signed_stop_text_is_queued_with_the_time_at_which_twilio_created_the_text(
    inbound_texts: CallbacksDoor,
) -> None:
    assert inbound_texts.answers(inbound_text("Stop.")) == 200
    (body,) = inbound_texts.queue.bodies
    assert json.loads(body) == {
        "source": "twilio-text",
        "number": NUMBER,
        "sent_to": OURS,
        "wish": "stop",
        "at": NOW_MS - 60_000 + 999,
    }


def test_the_feedback_reader_reads_a_queued_stop_or_start_text(inbound_texts: CallbacksDoor) -> None:
    assert inbound_texts.answers(inbound_text("Unstop")) == 200
    assert items_of(inbound_texts.queue.bodies[0]) == [KeywordText(NUMBER, OURS, "start", NOW_MS - 60_000)]


@pytest.mark.parametrize(("words", "wish"), [("ARRÊT", "stop"), ("oui", "start")])
def test_the_stages_configured_keywords_are_recognized_in_texts(
    inbound_texts: CallbacksDoor, words: str, wish: str
) -> None:
    assert inbound_texts.answers(inbound_text(words)) == 200
    assert json.loads(inbound_texts.queue.bodies[0])["wish"] == wish


@pytest.mark.parametrize(
    ("body", "type_", "wish"),
    [
        ("alto", "STOP", "stop"),
        ("dale", "START", "start"),
        ("STOP", "START", "stop"),
        ("YES", "HELP", "start"),
    ],
)
def test_a_stop_or_start_text_that_twilios_messaging_service_recognized_is_queued(
    inbound_texts: CallbacksDoor, body: str, type_: str, wish: str
) -> None:
    assert inbound_texts.answers(inbound_text(body, fields={"OptOutType": type_})) == 200
    assert json.loads(inbound_texts.queue.bodies[0])["wish"] == wish


def test_a_text_without_stop_or_start_is_counted_and_neither_queued_nor_looked_up_at_twilio(
    inbound_texts: CallbacksDoor, counted: Counted, log: Log
) -> None:
    inbound_texts.created = {}
    assert inbound_texts.answers(inbound_text("Where is my parcel?")) == 200
    assert inbound_texts.answers(inbound_text("info", fields={"OptOutType": "HELP"})) == 200
    assert (inbound_texts.queue.bodies, counted(), log()) == ([], {"TextsIgnored": 2}, [])


@pytest.mark.parametrize(
    "changes",
    [
        {"signature": ""},
        {"signature": sign("https://api.mailroom.example/twilio/inbound", {"Body": "STOP"}, "guessed")},
        {"fields": {"AccountSid": ACCOUNT[:-1] + "1"}},
    ],
)
def test_a_forged_inbound_text_is_refused(
    inbound_texts: CallbacksDoor, counted: Counted, changes: dict[str, str]
) -> None:
    assert inbound_texts.answers(inbound_text(**changes)) == 403  # type: ignore[arg-type]
    assert (inbound_texts.queue.bodies, counted()) == ([], {"TwilioCallbacksRefused": 1})


def test_a_captured_inbound_text_is_refused_if_its_body_or_its_path_was_changed(
    inbound_texts: CallbacksDoor,
) -> None:
    captured = inbound_text("START")
    for forged in (
        inbound_text("STOP"),
        inbound_text("START", fields={"From": "+16175559999"}),
        inbound_text("START", OTHER),
    ):
        assert inbound_texts.answers({**captured, "body": forged["body"]}) == 403
    assert inbound_texts.answers({**captured, "rawPath": "/callbacks/twilio/bS0x"}) == 403
    assert inbound_texts.queue.bodies == []


def test_an_inbound_text_that_twilio_posts_again_later_is_queued_with_the_same_time(
    inbound_texts: CallbacksDoor, clock: FakeClock
) -> None:
    inbound_texts.answers(inbound_text("START"))
    clock.advance(3600)
    inbound_texts.answers(inbound_text("START"))
    first, second = inbound_texts.queue.bodies
    assert first == second


def test_a_stop_text_created_in_the_same_second_as_a_start_text_gets_a_later_time(
    inbound_texts: CallbacksDoor,
) -> None:
    inbound_texts.created[OTHER] = inbound_texts.created[SID]
    inbound_texts.answers(inbound_text("START", OTHER))
    inbound_texts.answers(inbound_text("STOP"))
    start, stop = (json.loads(body)["at"] for body in inbound_texts.queue.bodies)
    assert stop - start == 999


TROUBLES = [
    NotSent("cannot be reached"),
    OutcomeUnknown("Twilio answered 404"),
    InvalidRequest("cannot be asked"),
]


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_stop_text_gets_the_current_time_if_its_creation_time_cannot_be_looked_up(
    inbound_texts: CallbacksDoor, trouble: Exception
) -> None:
    inbound_texts.created[SID] = trouble
    assert inbound_texts.answers(inbound_text()) == 200
    assert json.loads(inbound_texts.queue.bodies[0])["at"] == NOW_MS


@pytest.mark.parametrize("trouble", TROUBLES)
def test_if_a_start_texts_creation_time_cannot_be_looked_up_the_response_makes_twilio_retry(
    inbound_texts: CallbacksDoor, counted: Counted, log: Log, trouble: Exception
) -> None:
    inbound_texts.created[SID] = trouble
    assert inbound_texts.answers(inbound_text("START")) == 503
    assert (inbound_texts.queue.bodies, counted()) == ([], {"TwilioCallbacksFailed": 1})
    (line,) = log()
    assert (line["level"], line["reason"]) == ("ERROR", str(trouble))


@pytest.mark.parametrize("fields", [{"MessageSid": ""}, {"MessageSid": f"{SID[:-3]}/.."}, {"To": ""}])
def test_a_signed_text_without_a_valid_id_or_number_is_refused(
    inbound_texts: CallbacksDoor, fields: dict[str, str]
) -> None:
    assert inbound_texts.answers(inbound_text(fields=fields)) == 400


@pytest.mark.parametrize("name", ["MessageSid", "To"])
def test_a_signed_text_that_lacks_the_field_of_its_id_or_number_is_refused(
    inbound_texts: CallbacksDoor, name: str
) -> None:
    assert inbound_texts.answers(inbound_text(fields={name: ...})) == 400


def test_a_signed_stop_text_without_a_number_is_queued_and_then_rejected_as_malformed(
    inbound_texts: CallbacksDoor,
) -> None:
    assert inbound_texts.answers(inbound_text(fields={"From": ""})) == 200
    (body,) = inbound_texts.queue.bodies
    assert malformed_words(json.loads(body)).startswith("the number of a STOP or START is invalid")


def test_the_log_contains_only_the_id_and_the_keyword_of_a_text(
    inbound_texts: CallbacksDoor, log: Log
) -> None:
    for event in (
        inbound_text(),
        inbound_text("my secret"),
        inbound_text(signature="no"),
        inbound_text(fields={"To": ""}),
    ):
        inbound_texts.answers(event)
    assert [line["message"] for line in log()] == ["text queued", "request refused", "request refused"]
    assert (log()[0]["message_sid"], log()[0]["wish"]) == (SID, "stop")
    lines = json.dumps(log())
    assert not [text for text in (NUMBER, OURS, ACCOUNT, TOKEN, "secret") if text in lines]


INBOUND = {"date_created": "Sat, 21 Nov 2026 09:00:00 +0000", "direction": "inbound"}


def test_the_look_up_of_a_texts_creation_time_authenticates_with_the_api_key_of_the_account() -> None:
    with scripted(Answer(200, INBOUND)) as server:
        account = TwilioAccount(ACCOUNT, TOKEN, "SK1", "key-secret")
        assert message_created(account, server.url + "/", SID) == NOW
        (request,) = server.requests
    assert (request.method, request.path) == ("GET", f"/2010-04-01/Accounts/{ACCOUNT}/Messages/{SID}.json")
    assert request.headers["authorization"] == "Basic U0sxOmtleS1zZWNyZXQ="


@pytest.mark.parametrize(
    "answer",
    [
        Answer(404, {}),
        Answer(401, INBOUND),
        Answer(500, INBOUND),
        Answer(200, b"no"),
        Answer(200, {}),
        Answer(200, {"date_created": "yesterday"}),
    ],
)
def test_if_the_response_to_a_look_up_is_invalid_a_texts_creation_time_is_unknown(answer: Answer) -> None:
    with scripted(answer) as server, pytest.raises(OutcomeUnknown):
        message_created(TwilioAccount(ACCOUNT, TOKEN), server.url, SID)
