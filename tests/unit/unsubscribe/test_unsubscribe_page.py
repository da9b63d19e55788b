"""What the page shows, and what it keeps to itself."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

from mailroom import unsubscribe as page
from mailroom.recipients.unsubscribe_links import Choice
from mailroom.unsubscribe import HEADERS, shortened

CHOICE = Choice("vincent@example.com", "followers")
PAGES = {
    "asking": page.asking_page(CHOICE),
    "opted out": page.opted_out_page(CHOICE),
    "opted in": page.opted_in_page(CHOICE),
    "unknown": page.unknown_page(),
    "refused": page.refused_page(),
    "failed": page.failed_page(),
}


class Elements(HTMLParser):
    """All that a page consists of, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text: dict[str, str] = {}
        self._open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag != "meta":
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, f"</{tag}> closes what is not open"

    def handle_data(self, data: str) -> None:
        for each in self._open:
            self.text[each] = self.text.get(each, "") + data

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_whole_and_can_be_read_aloud(name: str) -> None:
    found = Elements(PAGES[name])
    assert PAGES[name].startswith("<!doctype html>")
    assert found.of("html") == [{"lang": "en"}]
    assert len(found.of("h1")) == len(found.of("title")) == len(found.of("main")) == 1
    assert found.text["title"] == found.text["h1"]
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in found.of("meta")


@pytest.mark.parametrize("name", PAGES)
def test_no_page_brings_a_script_or_anything_from_elsewhere(name: str) -> None:
    found = Elements(PAGES[name])
    allowed = {"html", "head", "meta", "title", "style", "body", "main", "h1", "p", "form", "button"}
    assert {tag for tag, _ in found.found} <= allowed | {"strong", "bdi"}
    assert not any(set(each) & {"src", "href", "action", "style"} for _, each in found.found)
    assert not any(name.startswith("on") for _, each in found.found for name in each)
    assert "url(" not in PAGES[name]
    assert "://" not in PAGES[name]


@pytest.mark.parametrize(
    ("name", "value", "label"),
    [
        ("asking", "unsubscribe", "Unsubscribe"),
        ("opted out", "subscribe", "Get them again"),
        ("opted in", "unsubscribe", "Unsubscribe"),
    ],
)
def test_a_page_about_a_choice_has_one_button_that_posts_to_where_it_is(
    name: str, value: str, label: str
) -> None:
    found = Elements(PAGES[name])
    assert found.of("form") == [{"method": "post"}]
    assert found.of("button") == [{"type": "submit", "name": "choice", "value": value}]
    assert found.text["button"] == label


@pytest.mark.parametrize("name", ["unknown", "refused", "failed"])
def test_a_page_about_a_fault_has_no_button_and_names_nobody(name: str) -> None:
    assert Elements(PAGES[name]).of("form") == []
    assert "followers" not in PAGES[name]


@pytest.mark.parametrize("name", ["asking", "opted out", "opted in"])
def test_address_and_topic_are_named_the_address_shortened(name: str) -> None:
    text = Elements(PAGES[name]).text["p"]
    assert "v***@example.com" in text
    assert "“followers”" in text
    assert "vincent" not in PAGES[name]


@pytest.mark.parametrize(
    ("recipient", "shown"),
    [
        ("vincent@example.com", "v***@example.com"),
        ("v@example.com", "v***@example.com"),
        ("a@xn--bcher-kva.example", "a***@bücher.example"),
        ("a@xn--zzzzzz.example", "a***@xn--zzzzzz.example"),
        ("a@bücher.example", "a***@bücher.example"),
        ("+16175551234", "…34"),
        ("'b'@example.com", "'***@example.com"),
    ],
)
def test_an_address_is_shortened_so_that_its_owner_knows_it(recipient: str, shown: str) -> None:
    assert shortened(recipient) == shown


NASTY = '<script>alert("x")</script>&\'"'


@pytest.mark.parametrize("make", [page.asking_page, page.opted_out_page, page.opted_in_page])
def test_whatever_stands_in_a_name_is_text(make: object) -> None:
    assert callable(make)
    html = make(Choice("<b>@<img src=x>", NASTY))
    found = Elements(html)
    assert {"script", "img", "b"}.isdisjoint(tag for tag, _ in found.found)
    assert NASTY in found.text["p"]
    assert NASTY not in html


@pytest.mark.parametrize("topic", ["أخبار الأسبوع", "ニュース", "Größe & Länge"])
def test_a_topic_of_any_language_stands_there_as_it_is_and_turns_nothing_round(topic: str) -> None:
    found = Elements(page.asking_page(Choice("vincent@example.com", topic)))
    assert topic in found.text["bdi"]
    assert topic in found.text["title"]


def test_the_policy_allows_the_pages_own_style_and_form_and_nothing_else() -> None:
    style = re.search(r"<style>(.*?)</style>", PAGES["asking"])
    assert style
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert HEADERS["Content-Security-Policy"] == (
        f"default-src 'none'; style-src 'sha256-{digest}'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    )


def test_the_address_of_the_page_reaches_no_other_site_no_cache_and_no_search_engine() -> None:
    assert HEADERS["Referrer-Policy"] == "no-referrer"
    assert HEADERS["Cache-Control"] == "no-store"
    assert HEADERS["X-Robots-Tag"].startswith("noindex")
    assert HEADERS["X-Content-Type-Options"] == "nosniff"
    assert HEADERS["Content-Type"] == "text/html; charset=utf-8"
