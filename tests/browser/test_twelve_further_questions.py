"""Twelve further questions of a support desk, each in at most five clicks from the overview, without a
command."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import ROOT, Stage
from tests.browser.test_console_in_chromium import mail
from tests.browser.test_twelve_questions import FOLLOWERS, Desk

api = pytest.importorskip("playwright.sync_api", reason="it needs a real Chromium: make browser")
expect = api.expect
MOST_CLICKS = 5


@pytest.fixture
def desk(stage: Stage, page: Any) -> Iterator[Desk]:
    desk = Desk(stage, page)
    yield desk
    assert desk.clicks <= MOST_CLICKS
    assert desk.errors == []
    assert desk.commands == []


def menu(desk: Desk, path: str) -> None:
    desk.click(f"header nav a[href$='{path}']")


def test_she_says_that_she_got_two(desk: Desk) -> None:
    for number in (1, 2):
        desk.stage.put(**mail(f"n-two-{number}", to="two@example.com", subject="Your order 7"))
    desk.find("two@example.com")
    desk.shows("2 messages of one day have the same template and subject", "n-two-1", "n-two-2", "UTC")


def test_why_the_text_came_an_hour_later(desk: Desk) -> None:
    desk.stage.put(
        id="n-late", event_type="sms", to="+16175551777", text="Hello", send_at="2026-01-01T00:00:00Z"
    )
    desk.find("+1 617 555 1777")
    desk.click(".stream a")
    desk.shows("n-late", "came in", "sent")


def test_no_mails_to_my_old_address_but_texts(desk: Desk) -> None:
    desk.stage.put(**mail("n-old", to="old@example.com"))
    desk.find("old@example.com")
    desk.click("#person")
    desk.click("#switch-mail")
    desk.type(desk.page.get_by_label("Why", exact=True).locator("visible=true"), "She has a new address")
    desk.click(desk.page.get_by_role("button", name="Suppress").locator("visible=true"))
    desk.click(desk.button("Suppress"))
    expect(desk.page.locator(".switches li.off b")).to_have_text("mail")


def test_who_did_not_get_the_news_as_a_csv_file(desk: Desk, tmp_path: Path) -> None:
    news = {"event_type": "mail", "template": "weekly-followers", "topic": "followers", **FOLLOWERS}
    desk.stage.put(id="n-news-1", to="reader@example.com", **news)
    desk.stage.put(id="n-news-2", to="rejected+news@simulator.amazonses.com", **news)
    menu(desk, "/messages")
    desk.type(desk.page.get_by_label("Template"), "weekly-followers")
    desk.page.get_by_label("Status").select_option("not-sent")
    desk.click(desk.button("Show"))
    expect(desk.page.locator("a[href*='id=n-news-2']")).to_be_visible()
    with desk.page.expect_download() as started:
        desk.click(desk.page.get_by_role("link", name="CSV"))
    started.value.save_as(tmp_path / "news.csv")
    text = (tmp_path / "news.csv").read_text()
    assert "rejected+news@simulator.amazonses.com" in text
    assert "reader@example.com" not in text


def test_was_the_fax_confirmed_and_when_for_a_court(desk: Desk) -> None:
    desk.stage.put(id="n-fax", event_type="fax", to="+12025550171", pdf_url="https://example.com/claim.pdf")
    desk.find("n-fax")
    desk.click(".stream a")
    desk.shows("delivered")
    desk.click("#receipt")
    desk.shows("Pages", "+12025550171", "https://example.com/claim.pdf")


def test_who_stopped_this_campaign_when_and_why(desk: Desk) -> None:
    stop = ("campaign", "stop", "weekly-followers", "--run", "n-stop", "--why", "The link was wrong", "--yes")
    desk.stage.mailroom("lane", "pause", "mail", "bulk", "--why", "The test needs time")
    desk.stage.mailroom("campaign", "start", "weekly-followers", "--run", "n-stop", "--new", "--yes")
    menu(desk, "/campaigns")
    desk.click("main a[href*='campaign=weekly-followers']")
    run = desk.page.get_by_role("region", name="Run n-stop")
    expect(run).to_be_visible()  # the run begins some seconds after its start
    desk.stage.mailroom(*stop)
    expect(run).to_contain_text("The link was wrong")
    expect(run).to_contain_text("root user")
    desk.stage.mailroom("lane", "resume", "mail", "bulk")


def test_send_again_to_these_with_a_corrected_link(desk: Desk) -> None:
    for number in range(4):
        desk.stage.put(
            **mail(f"n-link-{number}", to="link@example.com", text="See https://example.com/prces")
        )
    desk.find("link@example.com")
    expect(desk.page.locator("main .status.delivered")).to_have_count(4)
    desk.click(desk.page.get_by_label("All of this page"))
    desk.click(desk.button("Correct …"))
    desk.type(desk.page.get_by_label("Name of the correction"), "new-link")
    desk.type(desk.page.get_by_label("Changes"), "text=See https://example.com/prices")
    desk.click(desk.button("Show what it will do"))
    desk.shows("Correct: 4 of 4 messages.", "https://example.com/prices")
    desk.click(desk.button("Correct: 4 messages"))
    desk.shows("Correct: 4 of 4 messages done")
    desk.find("n-link-3~new-link")
    desk.click(".stream a")
    desk.shows("https://example.com/prices")


def test_what_did_she_read(desk: Desk) -> None:
    desk.stage.put(**mail("n-read", to="reader2@example.com", subject="Read me", text="The price is 7."))
    desk.find("reader2@example.com")
    desk.click(desk.page.get_by_role("link", name="Read me"))
    desk.shows("The price is 7.")


def test_why_do_all_mails_to_one_domain_bounce_since_noon(desk: Desk) -> None:
    for number in range(3):
        desk.stage.list_at_ses(f"p{number}@closed.example")
        desk.stage.put(**mail(f"n-domain-{number}", to=f"p{number}@closed.example"))
    menu(desk, "/failures")
    desk.click("a[id='bar-domainclosed.example']")
    desk.shows("3 messages", "bounced", "p1@closed.example")


def test_how_many_are_to_go_and_when_is_it_done(desk: Desk) -> None:
    desk.stage.mailroom("lane", "pause", "mail", "bulk", "--why", "The test needs time")
    desk.stage.mailroom("campaign", "start", "weekly-followers", "--run", "n-go", "--new", "--yes")
    menu(desk, "/campaigns")
    desk.click("main a[href*='campaign=weekly-followers']")
    run = desk.page.get_by_role("region", name="Run n-go")
    expect(run).to_contain_text("to be sent")
    expect(run).to_contain_text("Sending takes")
    desk.stage.mailroom("lane", "resume", "mail", "bulk")


def test_the_wrong_person_was_erased_by_whom_and_when(desk: Desk) -> None:
    desk.stage.put(**mail("n-erased", to="wrong@example.com"))
    desk.stage.mailroom("people", "erase", "wrong@example.com", "--why", "Ticket 12", "--yes")
    menu(desk, "/deeds")
    desk.shows("Erase", "root user", "Ticket 12")
    expect(desk.page.locator("main")).not_to_contain_text("wrong@example.com")
    desk.find("wrong@example.com")
    desk.click("#person")
    desk.shows("Erase", "Ticket 12")


@pytest.fixture
def bilingual() -> Iterator[str]:
    """A template in two languages, which exists during the test only."""
    name = "desk-news"
    folder = ROOT / "templates" / "mail" / name
    shutil.rmtree(folder, ignore_errors=True)
    for path, words in (("", "Hello"), ("fr", "Bonjour")):
        (folder / path).mkdir(parents=True, exist_ok=True)
        (folder / path / "subject.txt").write_text(f"{words} {{{{ name }}}}\n")
        (folder / path / "body.txt").write_text(f"{words}, {{{{ name }}}}.\n")
    (folder / "examples").mkdir()
    (folder / "examples" / "one.json").write_text('{"name": "Ada"}\n')
    yield name
    shutil.rmtree(folder)


def test_the_newsletter_in_french(desk: Desk, bilingual: str) -> None:
    menu(desk, "/templates")
    desk.click(f"main a[href*='name={bilingual}']")
    desk.page.get_by_label("Language").select_option("fr")
    desk.click(desk.page.locator("main").get_by_role("button", name="Show"))
    desk.shows("Bonjour Ada", "Bonjour, Ada.")
