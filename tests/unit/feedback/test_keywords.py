"""Which texts are STOP or START, and texts to a number at AWS."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailroom.feedback.keywords import KNOWN, MAX_TEXT, START, STOP, Keywords, KeywordText, folded
from tests.support.fuzz.work import assert_linear
from tests.support.unit.feedback_words import NUMBER, OURS, fault, texted, told, two_way
from tests.support.unit.post import Log
from tests.support.unit.shared import NOW_MS

Counted = Callable[[], dict[str, float]]
OWN = Keywords.of(["no más", "停止", "रोकें"], ["Oui"])


@pytest.mark.parametrize(
    "text",
    [
        # CTIA's, and those that the FCC names in 47 CFR 64.1200(a)(10)
        *("STOP", "STOPALL", "UNSUBSCRIBE", "CANCEL", "END", "QUIT", "REVOKE", "OPT OUT", "OPTOUT"),
        # AWS's
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
        *("\ufeffstop", "ｓｔｏｐ", "STOP\u00a0"),  # noqa: RUF001 - as some phones write it
    ],
)
def test_it_stops(text: str) -> None:
    assert KNOWN.wish(text) == "stop"


@pytest.mark.parametrize("text", ["START", "start", "Unstop", "YES", "yes!", " Yes "])
def test_it_starts(text: str) -> None:
    assert KNOWN.wish(text) == "start"


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "🛑", "HELP", "no", "Please stop", "stop please", "don't stop", "STOP START", "stopping"),
        *("Bus stop?", "yes please", "the end", "1"),
    ],
)
def test_other_texts_are_counted_and_ask_for_nothing(text: str, counted: Counted) -> None:
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
def test_a_stages_own_words_count_beside_those_that_everybody_knows(text: str, wish: str | None) -> None:
    assert OWN.wish(text) == wish
    if text not in {"stop", "start"}:
        assert KNOWN.wish(text) is None


def test_a_word_that_stands_for_both_stops_and_a_word_of_nothing_stands_for_nothing() -> None:
    assert Keywords.of(["yes"], ["stop"]).wish("yes") == "stop"
    assert Keywords.of(["yes"], ["stop"]).wish("stop") == "stop"
    assert Keywords.of(["!"], ["?"]).wish("🛑") is None


@given(st.text(max_size=50))
def test_case_blanks_and_punctuation_never_matter(text: str) -> None:
    assert folded(f" {text}!") == folded(text)
    assert KNOWN.wish(text) == KNOWN.wish(f"{text} .")


@given(st.sampled_from([*STOP, *START]), st.text(st.characters(categories=["Ll", "Nd"]), min_size=1))
def test_a_word_among_others_is_no_keyword(word: str, more: str) -> None:
    for text in (f"{word} {more}", f"{more} {word}"):
        assert KNOWN.wish(text) is None or folded(text) in {*STOP, *START}


def test_a_text_to_a_number_at_aws_is_of_the_time_at_which_sns_got_it() -> None:
    assert told(two_way("Stop")) == [KeywordText(NUMBER, "+12125550101", "stop", NOW_MS + 123)]
    assert told(two_way("UNSTOP")) == [KeywordText(NUMBER, "+12125550101", "start", NOW_MS + 123)]
    assert told(two_way("arrêt"), words=OWN) == [KeywordText(NUMBER, "+12125550101", "stop", NOW_MS + 123)]


def test_what_else_people_text_goes_nowhere(counted: Counted, log: Log) -> None:
    assert told(two_way("Where is my parcel?")) == []
    assert (counted(), log()) == ({"TextsIgnored": 1}, [])


def test_a_text_over_another_topic_is_not_believed() -> None:
    foreign = {**two_way(), "TopicArn": "arn:aws:sns:eu-central-1:999999999999:mailroom-test-feedback"}
    assert fault(foreign) == "from an SNS topic that is not one of the stage's"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (two_way(messageBody=...), "a text by AWS: Object missing required field `messageBody`"),
        (two_way(originationNumber=7), "a text by AWS: Expected `str`, got `int` - at `$.originationNumber`"),
        (two_way(sent="today"), "`Timestamp` is no ISO 8601 time"),
        (two_way(sent="0001-01-01T00:00:00+23:59"), "`Timestamp` is no time in epoch milliseconds"),
        (texted(wish="end"), "a text by Twilio: Invalid enum value 'end' - at `$.wish`"),
        (texted(at=-1), "`at` is no time in epoch milliseconds"),
    ],
)
def test_a_text_that_cannot_be_understood_is_malformed(body: dict[str, Any], said: str) -> None:
    assert fault(body) == said


@pytest.mark.parametrize("number", ["whatsapp:hello", "VERIFY", "", "12345", "+49 30 123456 hello"])
def test_a_text_whose_number_cannot_be_read_is_malformed_and_nothing_says_from_where(
    log: Log, number: str
) -> None:
    for body in (texted(number=number), two_way(originationNumber=number)):
        assert fault(body) == "the number of a STOP or START cannot be read; mark it by hand"
    assert "hello" not in str(log())


def test_a_text_that_twilios_function_has_queued_is_read() -> None:
    assert told(texted("start")) == [KeywordText(NUMBER, OURS, "start", NOW_MS)]


def test_a_text_longer_than_any_provider_hands_on_is_no_keyword() -> None:
    """Marks that follow a letter are sorted while they are folded: their number bounds the time."""
    assert KNOWN.wish("STOP" + " " * (MAX_TEXT - 4)) == "stop"
    assert KNOWN.wish("STOP" + " " * MAX_TEXT) is None
    assert_linear(lambda size: lambda: KNOWN.wish("a" + "\u0327\u0301" * (size // 2)), 16_000)


def test_a_fault_quotes_no_more_of_a_word_than_a_person_reads() -> None:
    assert len(fault(texted(wish="x" * 100_000))) < 300
