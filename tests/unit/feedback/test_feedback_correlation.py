"""Which message an event of SES is about: by the mail's header, else by its tags."""

from collections.abc import Callable
from typing import Any

import pytest

from mailroom.message.message import Key, Reference
from tests.support.unit.feedback_words import event, events, ses
from tests.support.unit.post import Log

Counted = Callable[[], dict[str, float]]
M2 = Reference("m-2").text


def about(
    *headers: tuple[str, str | None], name: str = "send", truncated: Any = False, **tags: Any
) -> dict[str, Any]:
    """An event of a mail with these headers and tags alone."""
    words = ses(name)
    words["mail"] |= {
        "headers": [{"name": each, "value": value} for each, value in headers],
        "headersTruncated": truncated,
        "tags": {tag: [value] for tag, value in tags.items()},
    }
    return words


@pytest.mark.parametrize("name", ["X-Correlation-ID", "x-correlation-id", "X-CORRELATION-ID"])
def test_the_header_is_found_in_any_case(name: str) -> None:
    assert event(about((name, M2))).key == Key("m-2", "mail")


def test_the_header_tells_the_attempt() -> None:
    found = event(about(("X-Correlation-ID", Reference("m-2", 3).text), correlation=M2, attempt="3"))
    assert (found.key.id, found.attempt) == ("m-2", 3)


def test_the_tags_tell_what_the_header_does_not() -> None:
    found = event(about(("Subject", "Hello"), correlation=M2, attempt="3"))
    assert (found.key, found.attempt) == (Key("m-2", "mail"), 3)
    assert event(about(correlation=M2)).attempt == 1
    assert event(about(correlation=M2, attempt="1")).attempt == 1


def test_a_header_without_an_attempt_takes_that_of_the_tags() -> None:
    assert event(about(("X-Correlation-ID", M2), correlation=M2, attempt="2")).attempt == 2


def test_an_event_without_headers_goes_by_its_tags() -> None:
    words = about(correlation=M2, attempt="2")
    del words["mail"]["headers"]
    assert event(words).attempt == 2
    words["mail"]["headers"] = None
    assert event(words).key.id == "m-2"


def test_the_header_wins_over_tags_that_name_another_message() -> None:
    found = event(about(("X-Correlation-ID", M2), correlation=Reference("m-3").text, attempt="4"))
    assert (found.key.id, found.attempt) == ("m-2", 1)


@pytest.mark.parametrize("header", ["!", "550e8400-e29b-41d4-a716-446655440000", None, ""])
def test_a_header_that_is_no_reference_leaves_the_word_to_the_tags(header: str | None) -> None:
    assert event(about(("X-Correlation-ID", header), correlation=M2)).key.id == "m-2"


def test_several_headers_that_differ_leave_the_word_to_the_tags() -> None:
    headers = [("X-Correlation-ID", Reference(id_).text) for id_ in ("m-2", "m-3")]
    assert event(about(*headers, correlation=Reference("m-3").text)).key.id == "m-3"
    assert events(about(*headers)) == []
    assert event(about(headers[0], headers[0])).key.id == "m-2"


@pytest.mark.parametrize("truncated", [True, "true"])
def test_the_last_of_truncated_headers_is_not_read_for_it_may_be_cut(truncated: Any) -> None:
    cut = ("X-Correlation-ID", Reference("order-1").text)
    whole = Reference("order-12").text
    assert event(about(cut, truncated=truncated, correlation=whole)).key.id == "order-12"
    assert event(about(cut, ("Subject", "He"), truncated=truncated)).key.id == "order-1"
    assert event(about(cut, truncated="false", correlation=whole)).key.id == "order-1"


def test_whatever_the_tags_say_the_event_is_a_mails() -> None:
    assert event(about(correlation=M2, event_type="sms")).key == Key("m-2", "mail")


def test_a_mail_without_header_and_tags_is_not_mailrooms(counted: Counted) -> None:
    assert events(about(("Subject", "Hello"))) == []
    assert counted() == {"EventsUncorrelated": 1}


def test_a_notice_without_its_headers_is_not_mailrooms(counted: Counted) -> None:
    words = ses("notice_of_bounce")
    for name in ("headersTruncated", "headers", "commonHeaders"):
        del words["mail"][name]
    assert events(words) == []
    assert counted() == {"EventsUncorrelated": 1}


@pytest.mark.parametrize("name", ["send", "notice_of_delivery"])
@pytest.mark.parametrize(
    "tags",
    [
        {},
        {"correlation": "!"},
        {"correlation": M2, "attempt": "0"},
        {"correlation": M2, "attempt": "-1"},
    ],
)
def test_another_programs_header_and_tags_are_dropped_and_logged_and_counted_once(
    name: str, tags: dict[str, str], log: Log, counted: Counted
) -> None:
    header = ("X-Correlation-ID", "550e8400-e29b-41d4-a716-446655440000")
    assert events(about(header, name=name, **tags)) == []
    assert [(line["level"], line["message"]) for line in log()] == [
        ("INFO", "event of a mail that is not Mailroom's")
    ]
    assert counted() == {"EventsUncorrelated": 1}


def test_an_event_that_lacks_its_mail_names_no_message_and_is_dropped(counted: Counted) -> None:
    words = ses("delivery")
    del words["mail"]
    assert events(words) == []
    assert events(words | {"mail": None}) == []
    assert counted() == {"EventsUncorrelated": 2}


def test_an_event_of_another_programs_mail_may_lack_what_it_would_be_read_by(counted: Counted) -> None:
    words = about(("X-Correlation-ID", "!"), name="delivery")
    del words["mail"]["timestamp"], words["delivery"]
    assert events(words) == []
    assert counted() == {"EventsUncorrelated": 1}
