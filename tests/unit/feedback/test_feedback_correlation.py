"""An event of SES is about the message that the mail's header names, or else its tags."""

from typing import Any

import pytest

from mailroom.message.message import Key, Reference
from tests.support.unit.feedback_words import events, one_event, ses_example
from tests.support.unit.post import Counted, Log

M2 = Reference("m-2").text


def event_with_headers(
    *headers: tuple[str, str | None], name: str = "send", truncated: Any = False, **tags: Any
) -> dict[str, Any]:
    """Return an event of a mail that has only these headers and tags."""
    content = ses_example(name)
    content["mail"] |= {
        "headers": [{"name": header, "value": value} for header, value in headers],
        "headersTruncated": truncated,
        "tags": {tag: [value] for tag, value in tags.items()},
    }
    return content


@pytest.mark.parametrize("name", ["X-Correlation-ID", "x-correlation-id", "X-CORRELATION-ID"])
def test_the_correlation_header_is_read_in_upper_and_lower_case(name: str) -> None:
    assert one_event(event_with_headers((name, M2))).key == Key("m-2", "mail")


def test_the_correlation_header_names_the_message_and_the_attempt() -> None:
    sent = one_event(
        event_with_headers(("X-Correlation-ID", Reference("m-2", 3).text), correlation=M2, attempt="3")
    )
    assert (sent.key.id, sent.attempt) == ("m-2", 3)


def test_if_the_correlation_header_is_missing_the_tags_name_the_message_and_the_attempt() -> None:
    sent = one_event(event_with_headers(("Subject", "Hello"), correlation=M2, attempt="3"))
    assert (sent.key, sent.attempt) == (Key("m-2", "mail"), 3)
    assert one_event(event_with_headers(correlation=M2)).attempt == 1
    assert one_event(event_with_headers(correlation=M2, attempt="1")).attempt == 1


def test_if_the_correlation_header_lacks_the_attempt_the_attempt_is_read_from_the_tags() -> None:
    assert one_event(event_with_headers(("X-Correlation-ID", M2), correlation=M2, attempt="2")).attempt == 2


def test_if_an_event_lacks_headers_the_tags_name_the_message() -> None:
    content = event_with_headers(correlation=M2, attempt="2")
    del content["mail"]["headers"]
    assert one_event(content).attempt == 2
    content["mail"]["headers"] = None
    assert one_event(content).key.id == "m-2"


def test_the_correlation_header_overrides_tags_that_name_another_message() -> None:
    sent = one_event(
        event_with_headers(("X-Correlation-ID", M2), correlation=Reference("m-3").text, attempt="4")
    )
    assert (sent.key.id, sent.attempt) == ("m-2", 1)


@pytest.mark.parametrize("header", ["!", "550e8400-e29b-41d4-a716-446655440000", None, ""])
def test_if_the_correlation_header_is_invalid_the_tags_name_the_message(header: str | None) -> None:
    assert one_event(event_with_headers(("X-Correlation-ID", header), correlation=M2)).key.id == "m-2"


def test_if_correlation_headers_contradict_each_other_the_tags_identify_the_message() -> None:
    headers = [("X-Correlation-ID", Reference(id_).text) for id_ in ("m-2", "m-3")]
    assert one_event(event_with_headers(*headers, correlation=Reference("m-3").text)).key.id == "m-3"
    assert events(event_with_headers(*headers)) == []
    assert one_event(event_with_headers(headers[0], headers[0])).key.id == "m-2"


@pytest.mark.parametrize("truncated", [True, "true"])
def test_the_last_mail_header_in_a_truncated_list_of_headers_is_ignored_because_it_may_be_cut(
    truncated: Any,
) -> None:
    cut = ("X-Correlation-ID", Reference("order-1").text)
    whole = Reference("order-12").text
    assert one_event(event_with_headers(cut, truncated=truncated, correlation=whole)).key.id == "order-12"
    assert one_event(event_with_headers(cut, ("Subject", "He"), truncated=truncated)).key.id == "order-1"
    assert one_event(event_with_headers(cut, truncated="false", correlation=whole)).key.id == "order-1"


def test_an_event_of_ses_is_about_a_mail_even_if_its_tags_name_another_type() -> None:
    assert one_event(event_with_headers(correlation=M2, event_type="sms")).key == Key("m-2", "mail")


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
@pytest.mark.parametrize("header", ["X-Correlation-ID", "Subject"])
def test_an_event_about_another_programs_mail_is_dropped_and_logged_and_counted_once(
    name: str, tags: dict[str, str], header: str, log: Log, counted: Counted
) -> None:
    content = event_with_headers((header, "550e8400-e29b-41d4-a716-446655440000"), name=name, **tags)
    assert events(content) == []
    assert [(line["level"], line["message"]) for line in log()] == [
        ("INFO", "event of a mail that is not Mailroom's")
    ]
    assert counted() == {"EventsUncorrelated": 1}


def test_an_event_that_does_not_name_its_message_is_dropped_even_if_other_fields_are_missing(
    counted: Counted,
) -> None:
    bare = ses_example("notice_of_bounce")
    for name in ("headersTruncated", "headers", "commonHeaders"):
        del bare["mail"][name]
    without_mail = {name: value for name, value in ses_example("delivery").items() if name != "mail"}
    foreign = event_with_headers(("X-Correlation-ID", "!"), name="delivery")
    del foreign["mail"]["timestamp"], foreign["delivery"]
    for content in (bare, without_mail, {**without_mail, "mail": None}, foreign):
        assert events(content) == []
    assert counted() == {"EventsUncorrelated": 4}
