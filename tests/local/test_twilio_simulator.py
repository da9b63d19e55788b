"""The Twilio simulator over real HTTP, with Twilio's own client, held against Twilio's own description."""

import json
from datetime import UTC, datetime

import pytest
import requests
from twilio.base.exceptions import TwilioException, TwilioRestException

from mailroom_local.providers.http import Reply, Request
from mailroom_local.providers.twilio import ACCOUNT_SID, API_KEY, API_KEY_SECRET, REDACTING_SID
from tests.support.local.fax import NOW
from tests.support.local.twilio import DESCRIPTION, SENDER, Bench, accepted_sms, number, running_twilio_bench

BENCH = running_twilio_bench
SERVICE = "MG" + "0a" * 16
CALLBACK = "https://abc.execute-api.us-east-1.amazonaws.com/callbacks/twilio/aGk"
MESSAGES = f"/2010-04-01/Accounts/{ACCOUNT_SID}/Messages.json"


def send_error(bench: Bench, to: str, body: str = "Hello", **more: object) -> tuple[int, int]:
    with pytest.raises(TwilioRestException) as caught:
        bench.send(to, body, **more)
    return caught.value.status, caught.value.code


def test_a_message_at_the_twilio_simulator_goes_from_queued_to_sent_to_delivered(bench: Bench) -> None:
    made = bench.send(number("60"), "Zoë", status_callback=CALLBACK, validity_period=600)
    assert (made.status, made.date_sent, made.num_segments, made.error_code) == ("queued", None, "1", None)
    assert made.date_created == datetime.fromtimestamp(int(NOW), UTC)
    states = []
    for _ in range(3):
        states.append(bench.twilio(made.sid).fetch().status)
        bench.wait(0.15)
    assert states == ["queued", "sent", "delivered"]
    assert [each.sid for each in bench.told] == [made.sid]
    (kept,) = bench.inbox.all()
    assert (kept.channel, kept.to, kept.provider_id) == ("sms", number("60"), made.sid)
    assert kept.content["text"] == kept.content["subject"] == "Zoë"
    assert (kept.content["callback"], kept.content["validity_seconds"]) == (CALLBACK, 600)


def test_a_messaging_service_selects_the_from_number_after_it_has_accepted_the_message(bench: Bench) -> None:
    made = bench.send(number("60"), messaging_service_sid=SERVICE)
    assert (made.status, made.from_, made.num_segments, made.messaging_service_sid) == (
        "accepted",
        None,
        "0",
        SERVICE,
    )
    bench.wait(1)
    assert bench.twilio(made.sid).fetch().from_ == bench.told[0].number


def test_a_message_with_media_is_an_mms(bench: Bench) -> None:
    urls = ["https://example.com/a.png", "https://example.com/b.png?signature=x"]
    made = bench.send(number("60"), media_url=urls)
    assert (made.sid[:2], made.num_media) == ("MM", "2")
    assert bench.inbox.all()[0].content["media_urls"] == urls


@pytest.mark.parametrize(
    ("ending", "status", "code"),
    [
        ("30", "undelivered", 30003),
        ("31", "undelivered", 30005),
        ("32", "undelivered", 30006),
        ("33", "failed", 30008),
        ("34", "sent", None),
    ],
)
def test_the_number_of_a_recipient_determines_the_outcome_of_the_message(
    bench: Bench, ending: str, status: str, code: int
) -> None:
    made = bench.send(number(ending))
    bench.wait(1)
    ended = bench.twilio(made.sid).fetch()
    assert (ended.status, ended.error_code, bool(ended.error_message)) == (status, code, code is not None)


@pytest.mark.parametrize(
    ("ending", "error"),
    [
        ("40", (400, 21211)),
        ("41", (400, 21614)),
        ("42", (400, 21610)),
        ("43", (400, 21408)),
        ("50", (429, 20429)),
        ("56", (500, 20500)),
    ],
)
def test_some_numbers_make_the_twilio_simulator_refuse_every_submit_with_a_fixed_error(
    bench: Bench, ending: str, error: tuple[int, int]
) -> None:
    assert [send_error(bench, number(ending)) for _ in range(2)] == [error, error]
    assert (bench.inbox.all(), bench.told) == ([], [])


@pytest.mark.parametrize(("ending", "error"), [("51", (429, 20429)), ("52", (500, 20500))])
def test_some_numbers_make_the_twilio_simulator_refuse_only_the_first_submit_of_each_content(
    bench: Bench, ending: str, error: tuple[int, int]
) -> None:
    for body in ("one", "two"):
        assert send_error(bench, number(ending), body) == error
        assert bench.send(number(ending), body).status == "queued"
    assert len(bench.inbox.all()) == 2


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"to": ""}, 21604),
        ({"to": "5550160"}, 21211),
        ({"from_": "+1"}, 21212),
        ({"body": ""}, 21602),
        ({"body": "x" * 1601}, 21617),
        ({"media_url": ["a.png"]}, 21620),
        ({"media_url": [f"https://example.com/{n}" for n in range(11)]}, 21620),
        ({"status_callback": "https://under_score.example/"}, 21609),
        ({"validity_period": 0}, 20001),
        ({"validity_period": 36_001}, 20001),
    ],
)
def test_the_twilio_simulator_refuses_an_invalid_request_with_the_error_code_of_twilio(
    bench: Bench, wrong: dict[str, object], code: int
) -> None:
    right: dict[str, object] = {"to": number("60"), "body": "Hello", "from_": SENDER}
    with pytest.raises(TwilioRestException) as caught:
        bench.twilio.create(**right | wrong)
    assert (caught.value.status, caught.value.code) == (400, code)
    assert bench.inbox.all() == []


def test_the_twilio_simulator_refuses_a_message_without_a_from_number_or_messaging_service(
    bench: Bench,
) -> None:
    with pytest.raises(TwilioRestException, match="From"):
        bench.twilio.create(to=number("60"), body="Hello")


def test_the_list_of_messages_begins_with_the_newest_and_a_new_message_does_not_shift_its_pages(
    bench: Bench,
) -> None:
    sids = [bench.send(number("60"), f"{n}").sid for n in range(5)]
    pages = bench.twilio.page(to=number("60"), page_size=2)
    assert [each.sid for each in pages] == [sids[4], sids[3]]
    bench.send(number("60"), "meanwhile")
    second = pages.next_page()
    assert [each.sid for each in second] == [sids[2], sids[1]]
    third = second.next_page()
    assert ([each.sid for each in third], third.next_page()) == ([sids[0]], None)
    assert len(bench.twilio.list(page_size=2)) == 6


def test_the_twilio_simulator_filters_its_list_of_messages_by_the_number_of_the_recipient(
    bench: Bench,
) -> None:
    first = bench.send(number("60")).sid
    bench.wait(10)
    second = bench.send(number("60")).sid
    bench.send(number("61"))
    assert [each.sid for each in bench.twilio.list(to=number("60"))] == [second, first]


def test_an_account_with_redaction_hides_the_text_and_the_end_of_the_number_of_a_sent_message(
    bench: Bench,
) -> None:
    path = f"{bench.url}/twilio/2010-04-01/Accounts/{REDACTING_SID}/Messages.json"
    bench.send(number("60"), "Your code is 4711")

    def listed(**query: str) -> list[tuple[str, str]]:
        answer = requests.get(path, query, auth=(REDACTING_SID, "local"), timeout=5).json()
        return [(message["to"], message["body"]) for message in answer["messages"]]

    assert listed(To=number("60")) == [(number("60"), "Your code is 4711")]
    bench.wait(1)
    assert (listed(), listed(To=number("60"))) == ([("+1617555XXXX", "")], [])
    assert [message.to for message in bench.twilio.list()] == [number("60")]


def test_the_twilio_simulator_refuses_a_request_without_the_token_or_an_api_key_of_the_account(
    bench: Bench,
) -> None:
    assert bench.client(API_KEY, API_KEY_SECRET).list() == []
    for user, password in ((ACCOUNT_SID, "wrong"), ("AC" + "1" * 32, "local")):
        with pytest.raises(TwilioException, match=r'401 \{"code": 20003'):
            bench.client(user, password).list()
    assert requests.get(f"{bench.url}/twilio{MESSAGES}", timeout=5).status_code == 401


def test_the_twilio_simulator_answers_404_for_an_unknown_message_and_405_for_an_unknown_method(
    bench: Bench,
) -> None:
    with pytest.raises(TwilioRestException) as caught:
        bench.twilio("SM" + "0" * 32).fetch()
    assert (caught.value.status, caught.value.code) == (404, 20404)
    with pytest.raises(TwilioRestException, match="405"):
        bench.twilio("SM" + "0" * 32).delete()


def test_the_openapi_description_of_twilio_rejects_invalid_requests_and_replies() -> None:
    asked, kind = Request("GET", MESSAGES, {}, b""), {"Content-Type": "application/json"}
    for listed, wrong in (({"sid": "SM1"}, "too short"), ({"to": "+1"}, "required property")):
        with pytest.raises(AssertionError, match=wrong):
            DESCRIPTION.reply(asked, Reply(200, json.dumps({"messages": [listed]}).encode(), kind))
    with pytest.raises(AssertionError, match="Colour"):
        DESCRIPTION.request(Request("POST", MESSAGES, {}, b"To=%2B1&Colour=red"))
    with pytest.raises(AssertionError, match="greater than the maximum"):
        DESCRIPTION.request(Request("GET", f"{MESSAGES}?PageSize=1001", {}, b""))
    with pytest.raises(AssertionError, match="not described"):
        DESCRIPTION.request(Request("PUT", MESSAGES, {}, b""))


@pytest.mark.parametrize(
    ("ending", "service", "statuses"),
    [
        ("60", "", ("queued", "sent", "delivered")),
        ("60", SERVICE, ("accepted", "queued", "sent", "delivered")),
        ("33", "", ("queued", "failed")),
        ("34", "", ("queued", "sent")),
    ],
)
def test_the_number_and_the_messaging_service_of_a_message_determine_its_statuses(
    ending: str, service: str, statuses: tuple[str, ...]
) -> None:
    assert accepted_sms(ending, service=service).statuses == statuses
