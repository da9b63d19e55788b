"""Questions of a support desk that the console behind the sign-in answers. By `contents`, each answer is
reached from the overview. By `read`, the same pages are without addresses."""

import base64
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.conftest import Stage, signed_in
from tests.browser.test_console_in_chromium import mail_to_ada
from tests.browser.test_twelve_questions import FOLLOWERS, Desk

api = pytest.importorskip("playwright.sync_api", reason="it needs a real Chromium: make browser")
expect = api.expect
MOST_CLICKS = 4
ADDRESS = re.compile(r"[\w.+-]+@[\w-]+\.\w+|\+1\d{6,}")
"""Address or number that is not masked."""
RUN = ("campaign", "stop", "weekly-followers", "--run", "d-stop", "--why", "The link was wrong", "--yes")


class Asker(Desk):
    """Somebody of the desk, who cannot act. Each page that has an answer is judged by the person's right."""

    def __init__(self, stage: Stage, page: Any, *, contents: bool) -> None:
        super().__init__(stage, page)
        self.contents = contents

    def shows(self, *words: str, whole: str = "") -> None:
        """Expect words in the content of the page, and those of `whole` by the right `contents` only."""
        super().shows(*words, *([whole] if whole and self.contents else []))
        if not self.contents:
            assert ADDRESS.findall(self.page.content()) == []


@pytest.fixture(scope="module")
def asked(stage: Stage) -> Iterator[Stage]:
    """A stage with the subjects of the questions. Afterwards, its lane and its queues are as before."""
    stage.list_at_ses("d.nothing@example.com")
    stage.put(**mail_to_ada("d-nothing", to="d.nothing@example.com", subject="Your ticket"))
    for number in range(3):
        stage.list_at_ses(f"d{number}@shut.example")
        stage.put(**mail_to_ada(f"d-domain-{number}", to=f"d{number}@shut.example"))
    for number, area in enumerate((201, 202, 203, 205, 206, 207, 208, 209, 210, 212)):
        stage.put(id=f"d-code-{number}", event_type="sms", to=f"+1{area}5550150", text="Your code is 123456.")
    stage.put(id="d-late", event_type="sms", to="+16175551778", text="Hi", send_at="2026-01-01T00:00:00Z")
    stage.put(**mail_to_ada("ada-order-42", subject="Your order 42"))
    for number in (1, 2):
        stage.put(**mail_to_ada(f"d-two-{number}", to="d.two@example.com", subject="Your order 7"))
    stage.put(id="d-fax", event_type="fax", to="+12025550171", pdf_url="https://example.com/claim.pdf")
    template = {"template": "weekly-followers", "topic": "followers", **FOLLOWERS}
    stage.put(**mail_to_ada("d-version", to="d.reader@example.com", subject=None, text=None, **template))
    stage.put(**mail_to_ada("d-read", to="d.read@example.com", subject="Read me", text="The price is 7."))
    stage.put(**mail_to_ada("d-twice", to="d.twice@example.com", subject="Perhaps twice"))
    stage.put(**mail_to_ada("d-erased", to="d.erased@example.com"))
    stage.bury("mail", mail_to_ada("d-buried", to="d.buried@example.com", attempt=1))
    stage.mailroom("lane", "pause", "mail", "bulk", "--why", "The test needs time")
    for run in ("d-go", "d-stop"):
        stage.mailroom("campaign", "start", "weekly-followers", "--run", run, "--new", "--yes")
    stage.mailroom("people", "erase", "d.erased@example.com", "--why", "Ticket 12", "--yes")
    yield stage
    stage.mailroom("lane", "resume", "mail", "bulk")
    stage.mailroom("messages", "resend", "--dead-letters", "mail", "--yes")


@pytest.fixture(scope="module", params=["grace", "ada"])
def page(asked: Stage, chromium: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    with signed_in(asked, chromium, request.param) as page:
        yield request.param, page


@pytest.fixture
def desk(asked: Stage, page: tuple[str, Any]) -> Iterator[Asker]:
    name, open_page = page
    desk = Asker(asked, open_page, contents=name == "grace")
    open_page.goto("/")
    yield desk
    assert desk.clicks <= MOST_CLICKS
    assert desk.errors == []


def menu(desk: Asker, path: str) -> None:
    desk.click(f"header nav a[href$='{path}']")


def test_the_teams_console_shows_why_a_person_got_nothing(desk: Asker) -> None:
    desk.find("D.Nothing@example.com")
    desk.click(desk.page.get_by_role("link", name="Your ticket"))
    desk.shows("bounced", whole="d.nothing@example.com")


def test_the_teams_console_shows_why_sms_messages_with_codes_are_late(desk: Asker) -> None:
    desk.click("#of-sms")
    desk.shows("Too Many Requests")


def test_the_teams_console_lists_the_bounces_since_yesterday(desk: Asker) -> None:
    desk.click("#wrong")
    desk.click("main a[href*='status=bounced']")
    desk.shows("bounced", whole="d.nothing@example.com")


def test_the_teams_console_shows_why_all_mails_to_one_domain_bounce(desk: Asker) -> None:
    menu(desk, "/failures")
    desk.click("a[id='bar-domainshut.example']")
    desk.shows("3 messages", "bounced", whole="d1@shut.example")


def test_the_teams_console_finds_the_message_of_a_forwarded_correlation_id(desk: Asker) -> None:
    desk.find(base64.urlsafe_b64encode(b"ada-order-42").decode())
    desk.click(desk.page.get_by_role("link", name="Your order 42"))
    expect(desk.page.locator("dd.id").first).to_have_text("ada-order-42")
    desk.shows("delivered", whole="ada@example.com")


def test_the_teams_console_shows_why_a_person_got_two_mails(desk: Asker) -> None:
    desk.find("d.two@example.com")
    desk.shows("2 messages of one day have the same template and subject", "d-two-1", "d-two-2")


def test_the_teams_console_shows_when_an_sms_message_reached_mailroom_and_when_it_was_sent(
    desk: Asker,
) -> None:
    desk.find("+1 617 555 1778")
    desk.click(".stream a")
    desk.shows("d-late", "came in", "sent", whole="+16175551778")


def test_the_teams_console_shows_the_receipt_of_a_delivered_fax(desk: Asker) -> None:
    desk.find("d-fax")
    desk.click(".stream a")
    desk.shows("delivered")
    desk.click("#receipt")
    desk.shows("Pages", whole="+12025550171")


def test_the_teams_console_shows_a_messages_template_and_its_variables_if_the_right_permits_it(
    desk: Asker,
) -> None:
    desk.find("d-version")
    desk.click(".stream a")
    expect(desk.page.locator("#of-template")).to_contain_text("weekly-followers")
    if desk.contents:
        desk.click(desk.page.get_by_text("Variables", exact=True))
    desk.shows("weekly-followers", whole="new_followers")


def test_the_teams_console_shows_the_content_of_a_message_only_if_the_right_permits_it(desk: Asker) -> None:
    desk.find("d.read@example.com")
    desk.click(desk.page.get_by_role("link", name="Read me"))
    desk.shows("Read me", whole="The price is 7.")
    if not desk.contents:
        desk.shows("Your right does not include the contents")
        assert "The price is 7." not in desk.page.content()


def test_the_teams_console_lists_dead_letters_and_the_command_that_resends_them(desk: Asker) -> None:
    desk.click("#dead-mail")
    desk.click("main a[href*='queue=mail']")
    expect(desk.page.get_by_role("link", name="d-buried")).to_be_visible()
    desk.shows("mailroom messages resend --dead-letters mail")


def test_the_teams_console_shows_that_messages_of_a_run_remain_and_how_long_sending_them_takes(
    desk: Asker,
) -> None:
    menu(desk, "/campaigns")
    desk.click("main a[href*='campaign=weekly-followers']")
    run = desk.page.get_by_role("region", name="Run d-go")
    expect(run).to_contain_text("to be sent")
    expect(run).to_contain_text("Sending takes")
    desk.shows()


def test_the_teams_console_shows_who_erased_a_person_and_why(desk: Asker) -> None:
    menu(desk, "/deeds")
    desk.shows("Erase", "root user", "Ticket 12")
    desk.find("d.erased@example.com")
    desk.click("#person")
    desk.shows("Erase", "Ticket 12")


def test_the_teams_console_shows_who_paused_a_lane_and_why(desk: Asker) -> None:
    menu(desk, "/deeds")
    desk.shows("Pause", "root user", "The test needs time")


def test_the_teams_console_lists_messages_that_may_have_arrived_twice(desk: Asker) -> None:
    desk.find("d-twice")
    desk.click(".stream a")
    desk.shows("delivered")
    if desk.contents:
        desk.stage.mailroom("messages", "resend", "d-twice", "--force", "--yes")
    menu(desk, "/messages")
    desk.click(desk.page.get_by_label("may have arrived twice"))
    desk.click(desk.page.get_by_role("button", name="Show"))
    expect(desk.page.locator("a[href*='id=d-twice']")).to_be_visible()
    desk.shows("Perhaps twice", whole="d.twice@example.com")


def test_the_teams_console_shows_who_stopped_a_run_of_a_campaign_and_why(desk: Asker) -> None:
    if desk.contents:
        desk.stage.mailroom(*RUN)
    menu(desk, "/campaigns")
    desk.click("main a[href*='campaign=weekly-followers']")
    run = desk.page.get_by_role("region", name="Run d-stop")
    expect(run).to_contain_text("The link was wrong")
    desk.shows("root user")
