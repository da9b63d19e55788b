"""Texts that count as STOP or START, and texts to a number at AWS."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailroom.providers.keywords import KNOWN, MAX_TEXT, START, STOP, Keywords, KeywordText, folded
from tests.support.fuzz.work import assert_linear
from tests.support.unit.feedback_words import NUMBER, OURS, items_of, malformed_words, texted, two_way
from tests.support.unit.post import Counted, Log
from tests.support.unit.shared import NOW_MS

OWN = Keywords.of(["no más", "停止", "रोकें"], ["Oui"])


@pytest.mark.parametrize(
    "text",
    [
        # words of CTIA, and words that the FCC lists in 47 CFR 64.1200(a)(10)
        *("STOP", "STOPALL", "UNSUBSCRIBE", "CANCEL", "END", "QUIT", "REVOKE", "OPT OUT", "OPTOUT"),
        # words of AWS
        *("ARRET", "REMOVE", "TD", "Arrêt", "ARRE\u0302T"),
        *(
            "stop",
            "Stop",
            " sToP \n",
            "Stop.",
            "STOP!!",
            '"stop"',
            "opt-out",
            "Opt Out.",
            "stop all",
            "STOP 🛑",
        ),
        *("\ufeffstop", "ｓｔｏｐ", "STOP\u00a0"),  # noqa: RUF001 - some phones write these characters
    ],
)
def test_a_stop_word_is_recognized_in_any_spelling(text: str) -> None:
    assert KNOWN.wish(text) == "stop"


@pytest.mark.parametrize("text", ["START", "start", "Unstop", "YES", "yes!", " Yes "])
def test_a_start_word_is_recognized_in_any_spelling(text: str) -> None:
    assert KNOWN.wish(text) == "start"


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "🛑", "HELP", "no", "Please stop", "stop please", "don't stop", "STOP START", "stopping"),
        *("Bus stop?", "yes please", "the end", "1"),
    ],
)
def test_an_inbound_text_without_a_keyword_is_counted_and_ignored(text: str, counted: Counted) -> None:
    assert KNOWN.wish(text) is None
    assert counted() == {"TextsIgnored": 1}


@pytest.mark.parametrize(
    ("text", "wish"),
    [
        *(
            ("No más.", "stop"),
            ("NO MAS", "stop"),
            ("no ma\u0301s", "stop"),
            ("停止", "stop"),
            ("रोकें", "stop"),
        ),
        *(("oui", "start"), ("रोको", None), ("stop", "stop"), ("start", "start")),
    ],
)
def test_the_keywords_of_a_stage_extend_the_standard_keywords(text: str, wish: str | None) -> None:
    assert OWN.wish(text) == wish
    if text not in {"stop", "start"}:
        assert KNOWN.wish(text) is None


def test_a_keyword_for_both_start_and_stop_means_stop_and_keywords_without_letters_are_ignored() -> None:
    assert Keywords.of(["yes"], ["stop"]).wish("yes") == "stop"
    assert Keywords.of(["yes"], ["stop"]).wish("stop") == "stop"
    assert Keywords.of(["!"], ["?"]).wish("🛑") is None


@given(st.text(max_size=50))
def test_blanks_and_punctuation_around_a_keyword_are_ignored(text: str) -> None:
    assert folded(f" {text}!") == folded(text)
    assert KNOWN.wish(text) == KNOWN.wish(f"{text} .")


@given(st.sampled_from([*STOP, *START]), st.text(st.characters(categories=["Ll", "Nd"]), min_size=1))
def test_a_keyword_inside_a_longer_text_is_ignored(word: str, words: str) -> None:
    for text in (f"{word} {words}", f"{words} {word}"):
        assert KNOWN.wish(text) is None or folded(text) in {*STOP, *START}


def test_a_stop_or_start_text_to_an_aws_number_gets_the_time_of_its_sns_notification() -> None:
    assert items_of(two_way("Stop")) == [KeywordText(NUMBER, "+12125550101", "stop", NOW_MS + 123)]
    assert items_of(two_way("UNSTOP")) == [KeywordText(NUMBER, "+12125550101", "start", NOW_MS + 123)]
    assert items_of(two_way("arrêt"), words=OWN) == [
        KeywordText(NUMBER, "+12125550101", "stop", NOW_MS + 123)
    ]


def test_a_text_without_a_keyword_to_an_aws_number_is_ignored_counted_and_not_logged(
    counted: Counted, log: Log
) -> None:
    assert items_of(two_way("Where is my parcel?")) == []
    assert (counted(), log()) == ({"TextsIgnored": 1}, [])


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (two_way(messageBody=...), "a text by AWS: Object missing required field `messageBody`"),
        (two_way(originationNumber=7), "a text by AWS: Expected `str`, got `int` - at `$.originationNumber`"),
        (two_way(sent="today"), "`Timestamp` is not an ISO 8601 time"),
        (two_way(sent="0001-01-01T00:00:00+23:59"), "`Timestamp` is not a time in epoch milliseconds"),
        (texted(wish="end"), "a text by Twilio: Invalid enum value 'end' - at `$.wish`"),
        (texted(at=-1), "`at` is not a time in epoch milliseconds"),
    ],
)
def test_a_stop_or_start_text_with_an_invalid_field_is_malformed(body: dict[str, Any], problem: str) -> None:
    assert malformed_words(body) == problem


@pytest.mark.parametrize("number", ["whatsapp:hello", "VERIFY", "", "12345", "+49 30 123456 hello"])
def test_a_stop_or_start_text_with_an_invalid_number_is_malformed_and_the_number_is_not_logged(
    log: Log, number: str
) -> None:
    for body in (texted(number=number), two_way(originationNumber=number)):
        assert (
            malformed_words(body) == "the number of a STOP or START is invalid; change the suppression list"
        )
    assert "hello" not in str(log())


def test_a_text_queued_by_the_twilio_callback_function_is_read() -> None:
    assert items_of(texted("start")) == [KeywordText(NUMBER, OURS, "start", NOW_MS)]


def test_an_inbound_text_longer_than_providers_deliver_is_ignored() -> None:
    """Folding sorts the combining marks after a letter, so their number bounds the time."""
    assert KNOWN.wish("STOP" + " " * (MAX_TEXT - 4)) == "stop"
    assert KNOWN.wish("STOP" + " " * MAX_TEXT) is None
    assert_linear(lambda size: lambda: KNOWN.wish("a" + "\u0327\u0301" * (size // 2)), 16_000)


def test_the_error_about_an_invalid_keyword_quotes_a_long_word_only_in_part() -> None:
    assert len(malformed_words(texted(wish="x" * 100_000))) < 300
