"""Texts of the page, and data that it does not show."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailroom.recipients.unsubscribe_links import Choice
from mailroom.unsubscribe.page import HEADERS, Page, PageSettings, Topic, shortened
from mailroom.unsubscribe.words import BUILT_IN, Words

CHOICE = Choice("vincent@example.com", "followers")
PAGE = Page(PageSettings())


def rendered_pages(page: Page) -> dict[str, str]:
    """Every page."""
    return {
        "asking": page.asking(CHOICE),
        "opted out": page.opted_out(CHOICE),
        "opted in": page.opted_in(CHOICE),
        "unknown": page.unknown(),
        "refused": page.refused(),
        "failed": page.failed(),
    }


PAGES = rendered_pages(PAGE)


class Elements(HTMLParser):
    """Return all elements of a page, and its text."""

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
def test_every_page_is_valid_html_with_a_language_and_a_title(name: str) -> None:
    found = Elements(PAGES[name])
    assert PAGES[name].startswith("<!doctype html>")
    assert found.of("html") == [{"lang": "en", "dir": "ltr"}]
    assert len(found.of("h1")) == len(found.of("title")) == len(found.of("main")) == 1
    assert found.text["title"] == found.text["h1"]
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in found.of("meta")


@pytest.mark.parametrize("name", PAGES)
def test_unsubscribe_pages_contain_no_script_and_no_external_resource(name: str) -> None:
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
def test_the_page_of_a_choice_has_one_button_that_posts_to_its_own_url(
    name: str, value: str, label: str
) -> None:
    found = Elements(PAGES[name])
    assert found.of("form") == [{"method": "post"}]
    assert found.of("button") == [{"type": "submit", "name": "choice", "value": value}]
    assert found.text["button"] == label


@pytest.mark.parametrize("name", ["unknown", "refused", "failed"])
def test_an_error_page_has_no_form_and_does_not_contain_the_topic(name: str) -> None:
    assert Elements(PAGES[name]).of("form") == []
    assert "followers" not in PAGES[name]


@pytest.mark.parametrize("name", ["asking", "opted out", "opted in"])
def test_the_page_contains_the_topic_and_a_shortened_address(name: str) -> None:
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
def test_an_address_is_shortened_so_that_its_owner_recognizes_it(recipient: str, shown: str) -> None:
    assert shortened(recipient) == shown


NASTY = '<script>alert("x")</script>&\'"'


@pytest.mark.parametrize("make", [PAGE.asking, PAGE.opted_out, PAGE.opted_in])
def test_the_topic_and_the_recipient_are_escaped_in_the_page(make: object) -> None:
    assert callable(make)
    html = make(Choice("<b>@<img src=x>", NASTY))
    found = Elements(html)
    assert {"script", "img", "b"}.isdisjoint(tag for tag, _ in found.found)
    assert NASTY in found.text["p"]
    assert NASTY not in html


@pytest.mark.parametrize("topic", ["أخبار الأسبوع", "ニュース", "Größe & Länge"])
def test_a_topic_in_any_language_is_shown_unchanged_and_isolated_in_its_direction(topic: str) -> None:
    found = Elements(PAGE.asking(Choice("vincent@example.com", topic)))
    assert topic in found.text["bdi"]
    assert topic in found.text["title"]


def test_the_content_security_policy_allows_only_the_pages_own_style_and_form() -> None:
    style = re.search(r"<style>(.*?)</style>", PAGES["asking"])
    assert style
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert HEADERS["Content-Security-Policy"] == (
        f"default-src 'none'; style-src 'sha256-{digest}'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    )


def test_the_headers_keep_the_url_of_the_page_from_other_sites_caches_and_search_engines() -> None:
    assert HEADERS["Referrer-Policy"] == "no-referrer"
    assert HEADERS["Cache-Control"] == "no-store"
    assert HEADERS["X-Robots-Tag"].startswith("noindex")
    assert HEADERS["X-Content-Type-Options"] == "nosniff"
    assert HEADERS["Content-Type"] == "text/html; charset=utf-8"


ARABIC = {"asking_title": "لا مزيد من {topic}؟", "unsubscribe": "إلغاء الاشتراك"}
SPEAKING = PageSettings(
    brand="Bücher & Co",
    languages={"de": {"asking": "{brand} schreibt {recipient} nichts mehr über {topic}."}, "ar": ARABIC},
    topics={
        "followers": Topic(titles={"en": "New followers", "de": "Neue <Folgende>"}),
        "deals": Topic(brand="Shop B"),
    },
)


def asking(accept_language: str, topic: str = "followers", settings: PageSettings = SPEAKING) -> Elements:
    return Elements(Page(settings, accept_language).asking(Choice("vincent@example.com", topic)))


@pytest.mark.parametrize(
    ("accept_language", "language"),
    [
        ("", "en"),
        ("de", "de"),
        ("DE-at", "de"),
        ("de-Latn-AT-1996", "de"),
        ("fr-FR, fr;q=0.9, de;q=0.8, en;q=0.7", "de"),
        ("en;q=0.5,de;q=0.7", "de"),
        ("en;q=0.7 , de ; q=0.7", "en"),
        ("fr", "en"),
        ("de;q=0, fr", "en"),
        ("de;q=0.000,ar;q=0.001", "ar"),
        ("*, de;q=0.5", "en"),
        ("fr;q=0.3, *;q=0.2, de;q=0.1", "en"),
        ("zh-Hant-HK, ar-EG", "ar"),
        ("de;q=2", "en"),
        ("de;q=high, ar;q=0.1", "ar"),
        (",,;q=1, -, de", "de"),
        ("german", "en"),
        (" " * 400 + "de", "de"),
        ("x," * 400 + "de", "en"),
    ],
)
def test_the_page_is_in_the_language_that_the_reader_prefers(accept_language: str, language: str) -> None:
    assert SPEAKING.language(accept_language) == language


@given(st.text(alphabet="de-*;q=01., \tä", max_size=5000) | st.text(max_size=2000))
def test_any_accept_language_header_leads_to_a_known_language(accept_language: str) -> None:
    assert SPEAKING.language(accept_language) in {"en", "de", "ar"}


def test_a_reader_without_a_preference_gets_the_default_language() -> None:
    settings = PageSettings(
        default_language="pt-BR", languages={"pt-BR": {"unsubscribe": "Cancelar"}, "en": {}}
    )
    for accept_language, language in (("", "pt-BR"), ("fr", "pt-BR"), ("PT-br", "pt-BR"), ("en-GB", "en")):
        assert asking(accept_language, settings=settings).of("html") == [{"lang": language, "dir": "ltr"}]


def test_texts_of_the_settings_override_built_in_texts_which_override_the_default_language() -> None:
    found = asking("de").text
    assert (found["h1"], found["button"]) == ("„Neue <Folgende>“ abbestellen?", "Abbestellen")
    assert "Bücher & Co schreibt v***@example.com nichts mehr über Neue <Folgende>." in found["p"]
    assert "will then get no more messages about “New followers”" in asking("ar").text["p"]
    words = PageSettings(default_language="de", languages={"en": {}, "fr": {"asking": "Quoi ?"}}).words
    assert (words("fr").asking, words("fr").unsubscribe) == ("Quoi ?", "Abbestellen")
    assert words("en") == Words()


def test_the_page_of_a_right_to_left_language_has_the_direction_rtl() -> None:
    assert asking("ar").of("html") == [{"lang": "ar", "dir": "rtl"}]
    settings = PageSettings(languages={"az-Arab": {"asking": "…"}})
    assert asking("az-Arab-IR", settings=settings).of("html") == [{"lang": "az-Arab", "dir": "rtl"}]


@pytest.mark.parametrize(
    ("topic", "brand", "title"),
    [("followers", "Bücher & Co", "New followers"), ("deals", "Shop B", "deals"), ("x", "Bücher & Co", "x")],
)
def test_a_topic_without_a_brand_has_the_brand_of_the_page_and_without_a_title_has_its_own_name(
    topic: str, brand: str, title: str
) -> None:
    found = asking("en", topic)
    assert found.text["h1"] == f"No more “{title}”?"
    assert found.text["p"].startswith(brand)


def test_an_error_page_has_the_language_of_the_reader_and_the_brand_of_the_page() -> None:
    for page in (
        Page(SPEAKING, "de").unknown(),
        Page(SPEAKING, "de").refused(),
        Page(SPEAKING, "de").failed(),
    ):
        found = Elements(page)
        assert found.of("html") == [{"lang": "de", "dir": "ltr"}]
        assert found.text["p"].startswith("Bücher & Co")
        assert "{" not in found.text["p"] + found.text["title"]


@pytest.mark.parametrize("language", BUILT_IN)
def test_a_built_in_language_has_every_text_and_placeholder_of_english(language: str) -> None:
    names = {key: set(re.findall(r"{\w+}", text)) for key, text in BUILT_IN[language].items()}
    assert names == {key: set(re.findall(r"{\w+}", text)) for key, text in BUILT_IN["en"].items()}
    assert language == "en" or not set(BUILT_IN[language].values()) & set(BUILT_IN["en"].values())
