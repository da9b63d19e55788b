"""How the Twilio adapter finds what a lost answer left behind."""

import json
from typing import Any

import pytest

from mailroom.channels.sms.contract import SmsRequest
from mailroom.channels.sms.twilio import same_text
from mailroom.errors import NotSent, OutcomeUnknown
from mailroom.message.outcome import Evidence, Facts, NotFound, Sent, Unknowable
from tests.support.unit.scripted_server import Answer, closed, scripted
from tests.support.unit.shared import NOW
from tests.support.unit.sms import FROM, MEDIA, REQUEST, TO, request
from tests.unit.channels.sms.test_twilio_sms import MESSAGES, SPEC, adapter

AT = "Sat, 21 Nov 2026 09:00:00 +0000"
FACTS: Facts = {"segments": 1, "encoding": "GSM-7"}


def listed(sid: str = "SM1", created: str = AT, **more: Any) -> dict[str, Any]:
    """As Twilio lists one that is queued: it has no `date_sent`, nor a sender yet."""
    return {
        "sid": sid,
        "to": TO,
        "from": None,
        "direction": "outbound-api",
        "body": REQUEST.text,
        "status": "queued",
        "date_created": created,
        "date_sent": None,
        **more,
    }


def page(*messages: dict[str, Any], following: str | None = None) -> Answer:
    return Answer(200, {"messages": list(messages), "next_page_uri": following})


def found(
    *pages: Answer, asked: SmsRequest = REQUEST, since: float = NOW, known: tuple[str, ...] = ()
) -> Evidence:
    with scripted(*pages) as server:
        return adapter(server.url).find(asked, since, known)


def test_it_asks_by_the_number_alone() -> None:
    with scripted(page()) as server:
        assert adapter(server.url).find(REQUEST, NOW, ()) == NotFound()
        (asked,) = server.requests
    assert (asked.method, asked.path) == ("GET", MESSAGES)
    assert asked.query == {"To": TO, "PageSize": "1000"}
    assert "authorization" in asked.headers


def test_one_that_waits_at_twilio_is_found_with_what_the_ledger_keeps() -> None:
    assert found(page(listed())) == Sent("SM1", FACTS)


@pytest.mark.parametrize(
    "other",
    [
        {"direction": "inbound"},
        {"to": "+15555550101"},
        {"body": "Your table is not ready"},
        {"body": "Table is ready"},
        {"sid": "MM1"},
        {"sid": "SM-known"},
        {"date_created": "Sat, 21 Nov 2026 08:59:59 +0000"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_another_message_is_not_taken_for_this_one(other: dict[str, Any]) -> None:
    assert found(page({**listed(), **other}), known=("SM-known",)) == NotFound()
    assert found(page({**listed("SM2"), **other}, listed()), known=("SM-known",)) == Sent("SM1", FACTS)


def test_whole_seconds_never_hide_a_message_of_the_same_second() -> None:
    assert found(page(listed()), since=NOW + 0.999) == Sent("SM1", FACTS)


def test_one_from_any_number_of_ours_may_be_this_one() -> None:
    assert found(page(listed(**{"from": FROM}))) == Sent("SM1", FACTS)


def test_of_several_the_oldest_is_this_one_also_within_a_second() -> None:
    later = listed("SM3", "Sat, 21 Nov 2026 09:00:01 +0000")
    assert found(page(later, listed("SM2"), listed("SM1"))) == Sent("SM1", FACTS)


@pytest.mark.parametrize(
    ("ours", "theirs"),
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
def test_a_text_is_known_in_the_form_that_twilio_keeps(ours: str, theirs: str) -> None:
    assert same_text(ours, theirs)
    assert found(page(listed(body=theirs)), asked=request(text=ours)) == Sent("SM1", FACTS)


@pytest.mark.parametrize(
    ("ours", "theirs"),
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
def test_other_texts_are_other_messages(ours: str, theirs: str) -> None:
    assert not same_text(ours, theirs)


MARKS = ("", " ", ".", ",", "-", "+", ":", "/", "'", "%", "*", "(", "=")


@pytest.mark.parametrize("mark", MARKS)
def test_what_stands_between_two_digits_counts(mark: str) -> None:
    for other in MARKS:
        assert same_text(f"1{mark}50", f"1{other}50") == (mark == other)


def rendered() -> SmsRequest:
    return SmsRequest(REQUEST.to, REQUEST.text, (), REQUEST.reference, None, FACTS, exact=False)


def test_another_wording_to_the_same_number_may_be_an_older_one_of_the_template() -> None:
    older_wording = listed("SM2", body="Your table is prepared")
    assert found(page(older_wording), asked=rendered()) == Unknowable()
    assert found(page(older_wording)) == NotFound()
    assert found(page(older_wording, listed()), asked=rendered()) == Sent("SM1", FACTS)


@pytest.mark.parametrize(
    "other",
    [
        {"direction": "inbound"},
        {"to": "+15555550101"},
        {"sid": "MM1"},
        {"sid": "SM-known"},
        {"date_created": "Sat, 21 Nov 2026 08:59:59 +0000"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_what_cannot_be_the_templates_message_leaves_none_in_doubt(other: dict[str, Any]) -> None:
    another = listed(**{"body": "Something else", **other}) if "sid" not in other else {**listed(), **other}
    assert found(page(another), asked=rendered(), known=("SM-known",)) == NotFound()
    assert found(page(), asked=rendered()) == NotFound()


def test_a_message_with_media_is_one_with_media() -> None:
    with_text, alone = request(media=(MEDIA,)), request(media=(MEDIA,), text="", facts={})
    assert found(page(listed("SM1")), asked=with_text) == NotFound()
    assert found(page(listed("MM1")), asked=with_text) == Sent("MM1", FACTS)
    assert found(page(listed("MM1", body="")), asked=alone) == Sent("MM1")
    assert found(page(listed("MM1", body=None)), asked=alone) == Sent("MM1")
    assert found(page(listed("MM1")), asked=alone) == NotFound()


@pytest.mark.parametrize("body", ["", None])
def test_a_message_whose_text_twilio_removed_could_be_this_one(body: str | None) -> None:
    assert found(page(listed(body=body))) == Unknowable()
    assert found(page(listed("SM2", body=body), listed("SM1"))) == Sent("SM1", FACTS)
    older = listed("SM2", "Fri, 20 Nov 2026 09:00:00 +0000", body=body)
    assert found(page(older)) == NotFound()


def test_what_the_answer_leaves_out_rules_no_message_out() -> None:
    assert found(page({"sid": "SM1", "body": REQUEST.text, "date_created": AT})) == Sent("SM1", FACTS)


def test_further_pages_are_read_from_the_same_host() -> None:
    following = f"{MESSAGES}?Page=1&PageToken=PASM2"
    with scripted(page(listed("SM2"), following=following), page(listed("SM1"))) as server:
        assert adapter(server.url).find(REQUEST, NOW, ()) == Sent("SM1", FACTS)
        assert server.requests[1].target == following
        assert server.requests[1].headers["authorization"].startswith("Basic ")


def test_a_next_page_may_be_named_in_full() -> None:
    with scripted(page(listed("SM1"))) as server:
        server.script.insert(0, page(listed("SM2"), following=f"{server.url}{MESSAGES}?Page=1"))
        assert adapter(server.url).find(REQUEST, NOW, ()) == Sent("SM1", FACTS)


def test_beyond_the_first_older_message_no_page_is_read() -> None:
    older = listed("SM0", "Sat, 21 Nov 2026 08:00:00 +0000", body="another")
    with scripted(page(listed(), older, following=f"{MESSAGES}?Page=1")) as server:
        assert adapter(server.url).find(REQUEST, NOW, ()) == Sent("SM1", FACTS)
        assert len(server.requests) == 1


@pytest.mark.parametrize("following", ["https://evil.example/Messages", "@evil.example/", "Messages?Page=1"])
def test_the_credentials_are_shown_to_no_other_host(following: str) -> None:
    with pytest.raises(OutcomeUnknown, match="another host"):
        found(page(listed(), following=following))


def test_a_list_without_end_is_no_answer() -> None:
    with scripted(page(listed(), following=f"{MESSAGES}?Page=1")) as server:
        with pytest.raises(OutcomeUnknown, match="more than 5 pages"):
            adapter(server.url).find(REQUEST, NOW, ())
        assert len(server.requests) == 5


@pytest.mark.parametrize(
    "answer",
    [
        Answer(500),
        Answer(401, {"code": 20003, "message": "Authenticate"}),
        Answer(200, b"?"),
        Answer(200, {}),
        page({"sid": "SM1", "body": REQUEST.text}),
        page(listed(created="yesterday")),
        page({"date_created": AT, "body": REQUEST.text}),
    ],
)
def test_a_list_that_cannot_be_understood_does_not_say_that_there_is_none(answer: Answer) -> None:
    with pytest.raises(OutcomeUnknown):
        found(answer)


def test_no_connection_does_not_say_that_there_is_none() -> None:
    with pytest.raises(NotSent):
        adapter(closed()).find(REQUEST, NOW, ())


def test_twilios_own_example_is_understood() -> None:
    paths = json.loads(SPEC.read_text())["paths"]
    get = paths["/2010-04-01/Accounts/{AccountSid}/Messages.json"]["get"]
    example = get["responses"]["200"]["content"]["application/json"]["examples"]["readFullPage1"]["value"]
    message = example["messages"][0]
    asked = request(to=message["to"], text=message["body"])
    assert found(Answer(200, {**example, "next_page_uri": None}), asked=asked, since=0) == Sent(
        message["sid"], FACTS
    )
