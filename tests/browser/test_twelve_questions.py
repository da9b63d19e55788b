"""The twelve questions of a support desk, by at most four clicks from the overview, and by command."""

import base64
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.conftest import Stage
from tests.browser.test_console_in_chromium import mail_to_ada

api = pytest.importorskip("playwright.sync_api", reason="it needs a real Chromium: make browser")
expect = api.expect
MOST_CLICKS = 4
FOLLOWERS = {"first_name": "Ada", "new_followers": 2, "followers": ["Grace", "Mary"]}
_ROWS: list[str] = []


class Desk:
    """A support person at the overview: counts clicks and typed fields, and meets no page of an error."""

    def __init__(self, stage: Stage, page: Any) -> None:
        self.stage, self.page = stage, page
        self.clicks = self.fields = 0
        self.commands: list[str] = []
        self.seconds = [0.0, 0.0]
        self.errors: list[str] = []
        page.on("response", self._heed)
        self._begun = time.monotonic()

    def click(self, place: Any) -> None:
        """Click an element of the page, or what a selector finds first."""
        self.clicks += 1
        target = self.page.locator(place).first if isinstance(place, str) else place
        target.click()

    def type(self, place: Any, text: str) -> None:
        """Fill in a field."""
        self.fields += 1
        place.fill(text)

    def find(self, text: str) -> None:
        """Find messages by the field on every page, and Enter."""
        self.type(self.page.get_by_role("searchbox", name="Find messages"), text)
        self.page.keyboard.press("Enter")

    def button(self, name: str) -> Any:
        """Return the last button of a name."""
        return self.page.get_by_role("button", name=name).last

    def shows(self, *words: str) -> None:
        """Expect words in the content of the page, which updates itself."""
        for each in words:
            expect(self.page.locator("main")).to_contain_text(each)

    def asks(self, *words: str) -> str:
        """Return the text of a command that answers the same question."""
        self.seconds[0] += time.monotonic() - self._begun
        begun = time.monotonic()
        text = self.stage.mailroom(*words)
        self.seconds[1] += time.monotonic() - begun
        self.commands.append(words[0])
        self._begun = time.monotonic()
        return text

    def _heed(self, response: Any) -> None:
        if response.status >= 400:
            self.errors.append(f"{response.status} {response.url}")


@pytest.fixture
def desk(stage: Stage, page: Any, request: pytest.FixtureRequest) -> Iterator[Desk]:
    desk = Desk(stage, page)
    yield desk
    name = request.node.name.removeprefix("test_").replace("_", " ")
    figures = f"{desk.clicks:>6} {desk.fields:>6} {desk.seconds[0]:>7.1f} s {desk.seconds[1]:>7.1f} s"
    _ROWS.append(f"{figures}  {', '.join(desk.commands):<24} {name}")
    assert desk.clicks <= MOST_CLICKS
    assert desk.errors == []
    assert desk.commands


@pytest.fixture(scope="module", autouse=True)
def table_of_questions() -> Iterator[None]:
    """The table of all questions, which `pytest -s` shows."""
    yield
    lines = ["", "clicks  typed   console  command  commands                 question", *_ROWS, ""]
    sys.stdout.write("\n".join(lines))


def test_the_console_shows_why_a_person_got_no_mail(desk: Desk) -> None:
    desk.stage.list_at_ses("ada.nothing@example.com")
    desk.stage.put(**mail_to_ada("q-nothing", to="ada.nothing@example.com", subject="Your ticket"))
    expect(desk.page.locator("main")).to_be_visible()
    desk.find("Ada.Nothing@example.com")
    desk.click(desk.page.get_by_role("link", name="Your ticket"))
    desk.shows("bounced")
    assert "bounced" in desk.asks("messages", "list", "ada.nothing@example.com")


def test_the_console_sends_a_copy_of_a_mail_to_another_address_with_an_edited_list_variable(
    desk: Desk,
) -> None:
    wrong = {"id": "q-typo", "event_type": "mail", "to": "rejected+typo@simulator.amazonses.com"}
    desk.stage.put(**wrong, template="weekly-followers", topic="followers", **FOLLOWERS)
    desk.find("q-typo")
    desk.click(".stream a")
    desk.click("#copy")
    desk.type(desk.page.get_by_label("To", exact=True), "ada.right@example.com")
    desk.type(desk.page.get_by_label("followers, row 2"), "Emmy")
    desk.click(desk.button("Look at it first"))
    desk.click(desk.button("Send it"))
    expect(desk.page.locator("dd.id").first).to_contain_text("q-typo-again-")
    desk.shows("delivered")
    sent = desk.asks("send", "--from-message", "q-typo", "--to", "ada.third@example.com")
    assert "q-typo-again-" in sent


def test_the_console_shows_why_sms_messages_with_codes_are_late(desk: Desk) -> None:
    for at, area in enumerate((201, 202, 203, 205, 206, 207, 208, 209, 210, 212)):
        number = f"+1{area}5550150"  # throttled each time
        desk.stage.put(id=f"q-code-{at}", event_type="sms", to=number, text="Your code is 123456.")
    desk.click("#of-sms")
    desk.shows("Too Many Requests")
    assert "Too Many Requests" in desk.asks("messages", "show", "q-code-0", "--channel", "sms")


def test_the_console_lists_the_bounces_since_yesterday(desk: Desk) -> None:
    desk.stage.list_at_ses("gone@example.com")
    desk.stage.put(**mail_to_ada("q-bounce", to="gone@example.com"))
    desk.click("#wrong")
    desk.click("main a[href*='status=bounced']")
    desk.shows("gone@example.com")
    failures = desk.asks("messages", "list", "--since", "1d", "--status", "bounced")
    assert "gone@example.com" in failures


def test_the_console_finds_the_message_of_a_forwarded_correlation_id(desk: Desk) -> None:
    desk.stage.put(**mail_to_ada("ada-order-41", subject="Your order 41"))
    reference = base64.urlsafe_b64encode(b"ada-order-41").decode()
    desk.find(reference)
    desk.click(desk.page.get_by_role("link", name="Your order 41"))
    expect(desk.page.locator("dd.id").first).to_have_text("ada-order-41")
    assert "ada-order-41" in desk.asks("messages", "list", reference)


def test_the_console_suppresses_only_the_channel_sms_for_a_persons_number(desk: Desk) -> None:
    desk.stage.put(id="q-bob", event_type="sms", to="+16175551239", text="Hello, Bob")
    desk.find("(617) 555-1239")
    desk.click("#person")
    desk.click("#switch-sms")
    desk.type(desk.page.get_by_label("Why", exact=True).locator("visible=true"), "He asked by phone")
    desk.click(desk.page.get_by_role("button", name="Suppress").locator("visible=true"))
    desk.click(desk.button("Suppress"))
    expect(desk.page.locator(".switches li.off b")).to_have_text("sms")
    assert "He asked by phone" in desk.asks("people", "show", "617 555 1239")


def test_the_console_erases_a_person_and_shows_a_receipt(desk: Desk) -> None:
    for who in ("carol", "dora"):
        desk.stage.put(**mail_to_ada(f"q-{who}", to=f"{who}@example.com"))
    desk.find("carol@example.com")
    desk.click("#person")
    desk.click("#erase")
    desk.click(desk.button("Look what there is"))
    desk.type(desk.page.get_by_label("Type carol@example.com"), "carol@example.com")
    desk.click(desk.button("Erase"))
    expect(desk.page.locator("#receipt")).to_be_visible()
    assert '"by"' in desk.asks("people", "erase", "dora@example.com", "--yes", "--json")


def test_the_console_stops_a_run_and_shows_it_as_done_after_campaign_start_has_started_it_again(
    desk: Desk,
) -> None:
    desk.stage.mailroom("lane", "pause", "mail", "bulk", "--why", "The test needs time")
    desk.stage.mailroom("campaign", "start", "weekly-followers", "--run", "q-run", "--new", "--yes")
    desk.click("header nav a[href$='/campaigns']")
    desk.click("main a[href*='campaign=weekly-followers']")
    desk.click("a[id='stop-q-run']")
    desk.type(desk.page.get_by_label("Reason"), "The link is wrong")
    desk.click(desk.button("Stop"))
    expect(desk.page.locator("a[id='go-on-q-run']")).to_be_visible()
    desk.stage.mailroom("lane", "resume", "mail", "bulk")
    desk.asks("campaign", "start", "weekly-followers", "--run", "q-run", "--yes")
    desk.page.goto("./campaigns?campaign=weekly-followers")
    run = desk.page.get_by_role("region", name="Run q-run")
    expect(run.locator("[aria-current=step]")).to_have_text("Done")  # the run starts at once


def test_the_console_lists_dead_letters_and_redrives_them(desk: Desk) -> None:
    desk.stage.bury("mail", mail_to_ada("q-buried", attempt=1))
    desk.click("#dead-mail")
    desk.click("main a[href*='queue=mail']")
    expect(desk.page.get_by_role("link", name="q-buried")).to_be_visible()
    desk.click(desk.page.get_by_role("link", name="Put all back").first)
    desk.click(desk.button("Put them back"))
    desk.shows("moved, 0 left")
    desk.stage.bury("mail", mail_to_ada("q-late", attempt=1))
    assert "q-late" in desk.asks("messages", "dead-letters", "q-late")


def test_the_console_lists_messages_that_may_have_arrived_twice(desk: Desk) -> None:
    desk.stage.put(**mail_to_ada("q-twice", subject="Perhaps twice"))
    desk.find("q-twice")
    desk.click(".stream a")
    desk.shows("delivered")
    desk.stage.mailroom("messages", "resend", "q-twice", "--force", "--yes")
    desk.click("header nav a[href$='/messages']")
    desk.click(desk.page.get_by_label("may have arrived twice"))
    desk.click(desk.button("Show"))
    expect(desk.page.locator("a[href*='id=q-twice']")).to_be_visible()
    assert "q-twice" in desk.asks("messages", "list", "--twice")


def test_the_console_shows_the_template_and_the_variables_of_a_message(desk: Desk) -> None:
    desk.stage.put(
        **mail_to_ada("q-version", subject=None, text=None, template="weekly-followers", topic="followers"),
        **FOLLOWERS,
    )
    desk.find("q-version")
    desk.click(".stream a")
    desk.click(desk.page.get_by_text("Variables", exact=True))
    desk.shows("new_followers", "Grace")
    expect(desk.page.locator("#of-template")).to_contain_text("weekly-followers")
    assert "template weekly-followers" in desk.asks("messages", "show", "q-version")


def test_the_console_shows_whether_the_signature_of_a_webhook_is_valid(desk: Desk) -> None:
    hook = {"url": f"{desk.stage.receiver}/ok/orders", "payload": {"order": 42}}
    desk.stage.put(id="q-hook", event_type="webhook", **hook)
    desk.click("header nav a[href$='/inbox']")
    desk.click("#tab-webhook")
    desk.shows("signature valid")
    assert "whsec_" in desk.asks("webhook-key", desk.stage.receiver)
