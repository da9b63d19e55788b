"""The look-up of messages at Twilio after a lost response."""

import json
from typing import Any

import pytest

from mailroom.channels.sms.contract import SmsRequest
from mailroom.errors import OutcomeUnknown
from mailroom.message.outcome import Evidence, Facts, NotFound, Sent, Unknowable
from mailroom.providers.twilio.sender import same_text
from tests.support.unit.scripted_server import Answer, scripted
from tests.support.unit.shared import NOW
from tests.support.unit.sms import FROM, MEDIA, REQUEST, TO, sms_request_with
from tests.unit.channels.sms.test_twilio_sms import MESSAGES, SPEC, twilio_at

CREATED = "Sat, 21 Nov 2026 09:00:00 +0000"
FACTS: Facts = {"segments": 1, "encoding": "GSM-7"}


def listed_message(sid: str = "SM1", created: str = CREATED, **changes: Any) -> dict[str, Any]:
    """Return a queued message in Twilio's list, still without `date_sent` and sender."""
    return {
        "sid": sid,
        "to": TO,
        "from": None,
        "direction": "outbound-api",
        "body": REQUEST.text,
        "status": "queued",
        "date_created": created,
        "date_sent": None,
        **changes,
    }


def message_page(*messages: dict[str, Any], following: str | None = None) -> Answer:
    return Answer(200, {"messages": list(messages), "next_page_uri": following})


def evidence_at_twilio(
    *pages: Answer, of: SmsRequest = REQUEST, since: float = NOW, other_ids: tuple[str, ...] = ()
) -> Evidence:
    with scripted(*pages) as server:
        return twilio_at(server.url).find(of, since, other_ids)


def test_if_twilios_list_by_number_is_empty_a_look_up_reads_one_page_of_all_numbers() -> None:
    with scripted(message_page(following=f"{MESSAGES}?Page=1")) as server:
        server.script.insert(0, message_page())
        assert twilio_at(server.url).find(REQUEST, NOW, ()) == NotFound()
        by_number, whole = server.requests
    assert (by_number.method, by_number.path) == (whole.method, whole.path) == ("GET", MESSAGES)
    assert by_number.query == {"To": TO, "PageSize": "1000"}
    assert whole.query == {"PageSize": "1000"}
    assert "authorization" in by_number.headers


def test_a_look_up_at_twilio_finds_a_message_with_its_segments_by_one_request() -> None:
    with scripted(message_page(listed_message())) as server:
        assert twilio_at(server.url).find(REQUEST, NOW, ()) == Sent("SM1", FACTS)
        assert len(server.requests) == 1


OTHER_MESSAGES: list[dict[str, Any]] = [
    {"direction": "inbound"},
    {"to": "+15555550101"},
    {"sid": "MM1"},
    {"sid": "SM-known"},
    {"date_created": "Sat, 21 Nov 2026 08:59:59 +0000"},
]


@pytest.mark.parametrize(
    "changes", [*OTHER_MESSAGES, {"body": "Your table is not ready"}, {"body": "Table is ready"}]
)
def test_a_look_up_does_not_mistake_another_message_for_the_requested_text(changes: dict[str, Any]) -> None:
    assert (
        evidence_at_twilio(message_page({**listed_message(), **changes}), other_ids=("SM-known",))
        == NotFound()
    )
    assert evidence_at_twilio(
        message_page({**listed_message("SM2"), **changes}, listed_message()), other_ids=("SM-known",)
    ) == Sent("SM1", FACTS)


def test_a_message_created_in_the_second_of_the_try_is_found_although_dates_are_in_whole_seconds() -> None:
    assert evidence_at_twilio(message_page(listed_message()), since=NOW + 0.999) == Sent("SM1", FACTS)


def test_a_look_up_finds_a_message_sent_from_another_number_of_the_stage() -> None:
    assert evidence_at_twilio(message_page(listed_message(**{"from": FROM}))) == Sent("SM1", FACTS)
    assert evidence_at_twilio(message_page(listed_message(**{"from": "+15555550188"}))) == Sent("SM1", FACTS)


def test_a_look_up_returns_the_oldest_matching_message_even_among_messages_of_the_same_second() -> None:
    later = listed_message("SM3", "Sat, 21 Nov 2026 09:00:01 +0000")
    assert evidence_at_twilio(message_page(later, listed_message("SM2"), listed_message("SM1"))) == Sent(
        "SM1", FACTS
    )


@pytest.mark.parametrize(
    ("submitted", "in_list"),
    [
        ("Your code is 4711", "Sent from your Twilio trial account - Your code is 4711"),
        ("“It’s ready” – come…", '"It\'s ready" - come...'),  # noqa: RUF001 - Smart Encoding's work
        ("a\u00a0b\u2003c", "a b c"),
        ("½ price", "1/2 price"),
        ("«Now» 5÷2 • ‹a›", '"Now" 5/2 * <a>'),  # noqa: RUF001
        ("it´s `here` ", "it's 'here'"),  # noqa: RUF001
        ("（a） 10％！", "(a) 10%!"),  # noqa: RUF001
        ("zero\u200bwidth", "zerowidth"),
        ("ᴀʙᴄ", "ABC"),
        ("ｆｕｌｌ", "full"),  # noqa: RUF001 - full width
        ("line\nbreak", "line\r\nbreak "),
        ("👍", "👍"),
        ("👍 👍", "👍 👍"),
        ("Grüße", "Grüße"),
    ],
)
def test_a_look_up_recognizes_a_text_in_the_form_that_twilio_lists(submitted: str, in_list: str) -> None:
    assert same_text(submitted, in_list)
    assert evidence_at_twilio(
        message_page(listed_message(body=in_list)), of=sms_request_with(text=submitted)
    ) == Sent("SM1", FACTS)


@pytest.mark.parametrize(
    ("submitted", "in_list"),
    [
        ("4711", "Your code is 4711"),
        ("Your code is 4711", "4711"),
        ("4711", "4712"),
        ("👍", "👎"),
        ("👍", "!"),
        ("!", "?"),
        ("ja", "JA"),
        ("You owe 1.50", "You owe 150"),
        ("at 12 30", "at 1230"),
        ("5'6", "56"),
        ("Come? Now!", "Come! Now?"),
        ("100%", "100"),
        ("3 €", "3 £"),
        ("", "Hello"),
        ("Hello", "Sent from your Twilio trial account - "),
    ],
)
def test_a_look_up_does_not_match_a_different_text(submitted: str, in_list: str) -> None:
    assert not same_text(submitted, in_list)


MARKS = ("", " ", ".", ",", "-", "+", ":", "/", "'", "%", "*", "(", "=")


@pytest.mark.parametrize("mark", MARKS)
def test_texts_that_differ_in_a_mark_between_two_digits_do_not_match(mark: str) -> None:
    for listed_mark in MARKS:
        assert same_text(f"1{mark}50", f"1{listed_mark}50") == (mark == listed_mark)


RENDERED = sms_request_with(exact=False)


def test_a_look_up_of_a_message_with_a_template_returns_unknowable_if_only_another_text_is_listed() -> None:
    older_text = listed_message("SM2", body="Your table is prepared")
    assert evidence_at_twilio(message_page(older_text), of=RENDERED) == Unknowable()
    assert evidence_at_twilio(message_page(older_text)) == NotFound()
    assert evidence_at_twilio(message_page(older_text, listed_message()), of=RENDERED) == Sent("SM1", FACTS)


@pytest.mark.parametrize("changes", OTHER_MESSAGES)
def test_a_look_up_of_a_message_with_a_template_ignores_listed_messages_that_cannot_match(
    changes: dict[str, Any],
) -> None:
    message = {**listed_message(body="Something else"), **changes}
    assert evidence_at_twilio(message_page(message), of=RENDERED, other_ids=("SM-known",)) == NotFound()


def test_if_twilios_list_is_empty_a_look_up_of_a_message_with_a_template_returns_not_found() -> None:
    assert evidence_at_twilio(message_page(), of=RENDERED) == NotFound()


def test_a_look_up_finds_a_message_with_media_by_the_text_and_the_prefix_of_twilios_message_id() -> None:
    with_text, alone = sms_request_with(media=(MEDIA,)), sms_request_with(media=(MEDIA,), text="", facts={})
    assert evidence_at_twilio(message_page(listed_message("SM1")), of=with_text) == NotFound()
    assert evidence_at_twilio(message_page(listed_message("MM1")), of=with_text) == Sent("MM1", FACTS)
    assert evidence_at_twilio(message_page(listed_message("MM1", body="")), of=alone) == Sent("MM1")
    assert evidence_at_twilio(message_page(listed_message("MM1", body=None)), of=alone) == Sent("MM1")
    assert evidence_at_twilio(message_page(listed_message("MM1")), of=alone) == NotFound()


@pytest.mark.parametrize("body", ["", None])
def test_a_look_up_returns_unknowable_if_the_text_of_a_listed_message_is_missing(body: str | None) -> None:
    assert evidence_at_twilio(message_page(listed_message(body=body))) == Unknowable()
    assert evidence_at_twilio(message_page(listed_message("SM2", body=body), listed_message("SM1"))) == Sent(
        "SM1", FACTS
    )
    older = listed_message("SM2", "Fri, 20 Nov 2026 09:00:00 +0000", body=body)
    assert evidence_at_twilio(message_page(older)) == NotFound()


def test_a_look_up_finds_a_listed_message_even_if_optional_fields_are_missing() -> None:
    bare = {"sid": "SM1", "to": TO, "body": REQUEST.text, "date_created": CREATED}
    assert evidence_at_twilio(message_page(bare)) == Sent("SM1", FACTS)


MASKED = (
    f"{TO[:-4]}XXXX",
    f"{TO[:-4]}****",
    f"{TO[:-4]}0000",
    TO[:-4],
    TO[2:],
    TO[1:],
    f"rcs:{TO}",
    "",
    None,
    7,
)


@pytest.mark.parametrize("to", MASKED)
@pytest.mark.parametrize("body", [REQUEST.text, "", None])
def test_a_message_that_twilio_lists_without_its_whole_phone_number_proves_nothing(
    to: object, body: str | None
) -> None:
    message = listed_message(to=to, body=body)
    assert evidence_at_twilio(message_page(message)) == Unknowable()
    assert evidence_at_twilio(message_page(), message_page(message)) == Unknowable()
    assert evidence_at_twilio(message_page(message, listed_message())) == Sent("SM1", FACTS)


@pytest.mark.parametrize(
    "body",
    [
        *("XXXX", "**** ***** ** *****", "[redacted]", "This message was removed", "Your table", "is ready"),
        *(
            "Your ta...",
            "Your ta…",
            f"{REQUEST.text} Reply STOP to opt out",
            "Sent from your Twilio trial account",
        ),
    ],
)
def test_a_text_that_twilio_may_have_masked_cut_or_extended_in_its_list_proves_nothing(body: str) -> None:
    assert evidence_at_twilio(message_page(listed_message(body=body))) == Unknowable()


def test_in_an_account_that_redacts_numbers_an_empty_list_by_number_proves_nothing() -> None:
    other = listed_message("SM-known", "Fri, 20 Nov 2026 09:00:00 +0000", to="+1777555XXXX", body="")
    assert evidence_at_twilio(message_page(), message_page(other), other_ids=("SM-known",)) == Unknowable()
    assert evidence_at_twilio(message_page(), message_page({**other, "direction": "inbound"})) == NotFound()
    assert evidence_at_twilio(message_page(listed_message()), message_page(other)) == Sent("SM1", FACTS)
    for whole in ("+17775550123", "whatsapp:+17775550123"):
        assert evidence_at_twilio(message_page(), message_page({**other, "to": whole})) == NotFound()


def test_a_look_up_reads_all_pages_of_the_message_list_from_the_same_host() -> None:
    following = f"{MESSAGES}?Page=1&PageToken=PASM2"
    with scripted(
        message_page(listed_message("SM2"), following=following), message_page(listed_message("SM1"))
    ) as server:
        assert twilio_at(server.url).find(REQUEST, NOW, ()) == Sent("SM1", FACTS)
        assert server.requests[1].target == following
        assert server.requests[1].headers["authorization"].startswith("Basic ")


def test_the_uri_of_the_next_page_of_twilios_message_list_may_include_the_host() -> None:
    with scripted(message_page(listed_message("SM1"))) as server:
        server.script.insert(
            0, message_page(listed_message("SM2"), following=f"{server.url}{MESSAGES}?Page=1")
        )
        assert twilio_at(server.url).find(REQUEST, NOW, ()) == Sent("SM1", FACTS)


def test_a_look_up_stops_reading_pages_at_the_first_message_older_than_the_try() -> None:
    older = listed_message("SM0", "Sat, 21 Nov 2026 08:00:00 +0000", body="another")
    with scripted(message_page(listed_message(), older, following=f"{MESSAGES}?Page=1")) as server:
        assert twilio_at(server.url).find(REQUEST, NOW, ()) == Sent("SM1", FACTS)
        assert len(server.requests) == 1


@pytest.mark.parametrize("following", ["https://evil.example/Messages", "@evil.example/", "Messages?Page=1"])
def test_a_look_up_does_not_send_the_credentials_to_another_host(following: str) -> None:
    with pytest.raises(OutcomeUnknown, match="another host"):
        evidence_at_twilio(message_page(listed_message(), following=following))


def test_if_the_message_list_has_too_many_pages_the_outcome_stays_unknown() -> None:
    with scripted(message_page(listed_message(), following=f"{MESSAGES}?Page=1")) as server:
        with pytest.raises(OutcomeUnknown, match="more than 5 pages"):
            twilio_at(server.url).find(REQUEST, NOW, ())
        assert len(server.requests) == 5


@pytest.mark.parametrize(
    "answer",
    [
        message_page({"sid": "SM1", "body": REQUEST.text}),
        message_page(listed_message(created="yesterday")),
        message_page(listed_message(created="Sat, 21 Nov 2026")),
        message_page(listed_message(created="Sat, 21 Nov [redacted]26 09:00:00 +0000")),
        message_page({"date_created": CREATED, "body": REQUEST.text}),
    ],
)
def test_if_the_message_list_cannot_be_read_the_outcome_stays_unknown(answer: Answer) -> None:
    with pytest.raises(OutcomeUnknown):
        evidence_at_twilio(answer)


def test_a_look_up_reads_the_example_response_in_twilios_specification() -> None:
    paths = json.loads(SPEC.read_text())["paths"]
    get = paths["/2010-04-01/Accounts/{AccountSid}/Messages.json"]["get"]
    example = get["responses"]["200"]["content"]["application/json"]["examples"]["readFullPage1"]["value"]
    message = example["messages"][0]
    of = sms_request_with(to=message["to"], text=message["body"])
    first_page = Answer(200, {**example, "next_page_uri": None})
    assert evidence_at_twilio(first_page, of=of, since=0) == Sent(message["sid"], FACTS)
