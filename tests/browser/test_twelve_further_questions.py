"""Twelve further questions of a support desk, each in at most five clicks from the overview, without a
command."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import ROOT, Stage
from tests.browser.test_console_in_chromium import mail_to_ada
from tests.browser.test_twelve_questions import FOLLOWERS, Desk

api = pytest.importorskip("playwright.sync_api", reason="it needs a real Chromium: make browser")
expect = api.expect
MOST_CLICKS = 5


@pytest.fixture
def further_desk(stage: Stage, page: Any) -> Iterator[Desk]:
    desk = Desk(stage, page)
    yield desk
    assert desk.clicks <= MOST_CLICKS
    assert desk.errors == []
    assert desk.commands == []


def menu(desk: Desk, path: str) -> None:
    desk.click(f"header nav a[href$='{path}']")


def test_the_console_shows_why_a_person_got_two_mails(further_desk: Desk) -> None:
    for number in (1, 2):
        further_desk.stage.put(**mail_to_ada(f"n-two-{number}", to="two@example.com", subject="Your order 7"))
    further_desk.find("two@example.com")
    further_desk.shows(
        "2 messages of one day have the same template and subject", "n-two-1", "n-two-2", "UTC"
    )


def test_the_console_shows_when_an_sms_message_reached_mailroom_and_when_it_was_sent(
    further_desk: Desk,
) -> None:
    further_desk.stage.put(
        id="n-late", event_type="sms", to="+16175551777", text="Hello", send_at="2026-01-01T00:00:00Z"
    )
    further_desk.find("+1 617 555 1777")
    further_desk.click(".stream a")
    further_desk.shows("n-late", "came in", "sent")


def test_the_console_suppresses_only_the_channel_mail_for_a_persons_old_address(further_desk: Desk) -> None:
    further_desk.stage.put(**mail_to_ada("n-old", to="old@example.com"))
    further_desk.find("old@example.com")
    further_desk.click("#person")
    further_desk.click("#switch-mail")
    further_desk.type(
        further_desk.page.get_by_label("Why", exact=True).locator("visible=true"), "She has a new address"
    )
    further_desk.click(further_desk.page.get_by_role("button", name="Suppress").locator("visible=true"))
    further_desk.click(further_desk.button("Suppress"))
    expect(further_desk.page.locator(".switches li.off b")).to_have_text("mail")


def test_the_console_exports_as_csv_which_recipients_did_not_get_a_templates_mail(
    further_desk: Desk, tmp_path: Path
) -> None:
    news = {"event_type": "mail", "template": "weekly-followers", "topic": "followers", **FOLLOWERS}
    further_desk.stage.put(id="n-news-1", to="reader@example.com", **news)
    further_desk.stage.put(id="n-news-2", to="rejected+news@simulator.amazonses.com", **news)
    menu(further_desk, "/messages")
    further_desk.type(further_desk.page.get_by_label("Template"), "weekly-followers")
    further_desk.page.get_by_label("Status").select_option("not-sent")
    further_desk.click(further_desk.button("Show"))
    expect(further_desk.page.locator("a[href*='id=n-news-2']")).to_be_visible()
    with further_desk.page.expect_download() as started:
        further_desk.click(further_desk.page.get_by_role("link", name="CSV"))
    started.value.save_as(tmp_path / "news.csv")
    text = (tmp_path / "news.csv").read_text()
    assert "rejected+news@simulator.amazonses.com" in text
    assert "reader@example.com" not in text


def test_the_console_shows_the_receipt_of_a_fax_with_its_pages_number_and_url(further_desk: Desk) -> None:
    further_desk.stage.put(
        id="n-fax", event_type="fax", to="+12025550171", pdf_url="https://example.com/claim.pdf"
    )
    further_desk.find("n-fax")
    further_desk.click(".stream a")
    further_desk.shows("delivered")
    further_desk.click("#receipt")
    further_desk.shows("Pages", "+12025550171", "https://example.com/claim.pdf")


def test_the_console_shows_who_stopped_a_run_of_a_campaign_and_why(further_desk: Desk) -> None:
    stop = ("campaign", "stop", "weekly-followers", "--run", "n-stop", "--why", "The link was wrong", "--yes")
    further_desk.stage.mailroom("lane", "pause", "mail", "bulk", "--why", "The test needs time")
    further_desk.stage.mailroom("campaign", "start", "weekly-followers", "--run", "n-stop", "--new", "--yes")
    menu(further_desk, "/campaigns")
    further_desk.click("main a[href*='campaign=weekly-followers']")
    run = further_desk.page.get_by_role("region", name="Run n-stop")
    expect(run).to_be_visible()  # the run begins some seconds after its start
    further_desk.stage.mailroom(*stop)
    expect(run).to_contain_text("The link was wrong")
    expect(run).to_contain_text("root user")
    further_desk.stage.mailroom("lane", "resume", "mail", "bulk")


def test_the_console_sends_corrected_copies_of_the_selected_messages(further_desk: Desk) -> None:
    for number in range(4):
        further_desk.stage.put(
            **mail_to_ada(f"n-link-{number}", to="link@example.com", text="See https://example.com/prces")
        )
    further_desk.find("link@example.com")
    expect(further_desk.page.locator("main .status.delivered")).to_have_count(4)
    further_desk.click(further_desk.page.get_by_label("All of this page"))
    further_desk.click(further_desk.button("Correct …"))
    further_desk.type(further_desk.page.get_by_label("Name of the correction"), "new-link")
    further_desk.type(further_desk.page.get_by_label("Changes"), "text=See https://example.com/prices")
    further_desk.click(further_desk.button("Show what it will do"))
    further_desk.shows("Correct: 4 of 4 messages.", "https://example.com/prices")
    further_desk.click(further_desk.button("Correct: 4 messages"))
    further_desk.shows("Correct: 4 of 4 messages done")
    further_desk.find("n-link-3~new-link")
    further_desk.click(".stream a")
    further_desk.shows("https://example.com/prices")


def test_the_console_shows_the_content_that_a_person_got(further_desk: Desk) -> None:
    further_desk.stage.put(
        **mail_to_ada("n-read", to="reader2@example.com", subject="Read me", text="The price is 7.")
    )
    further_desk.find("reader2@example.com")
    further_desk.click(further_desk.page.get_by_role("link", name="Read me"))
    further_desk.shows("The price is 7.")


def test_the_console_shows_why_all_mails_to_one_domain_bounce(further_desk: Desk) -> None:
    for number in range(3):
        further_desk.stage.list_at_ses(f"p{number}@closed.example")
        further_desk.stage.put(**mail_to_ada(f"n-domain-{number}", to=f"p{number}@closed.example"))
    menu(further_desk, "/failures")
    further_desk.click("a[id='bar-domainclosed.example']")
    further_desk.shows("3 messages", "bounced", "p1@closed.example")


def test_the_console_shows_that_messages_of_a_run_remain_and_how_long_sending_them_takes(
    further_desk: Desk,
) -> None:
    further_desk.stage.mailroom("lane", "pause", "mail", "bulk", "--why", "The test needs time")
    further_desk.stage.mailroom("campaign", "start", "weekly-followers", "--run", "n-go", "--new", "--yes")
    menu(further_desk, "/campaigns")
    further_desk.click("main a[href*='campaign=weekly-followers']")
    run = further_desk.page.get_by_role("region", name="Run n-go")
    expect(run).to_contain_text("to be sent")
    expect(run).to_contain_text("Sending takes")
    further_desk.stage.mailroom("lane", "resume", "mail", "bulk")


def test_the_console_shows_who_erased_a_person_and_why(further_desk: Desk) -> None:
    further_desk.stage.put(**mail_to_ada("n-erased", to="wrong@example.com"))
    further_desk.stage.mailroom("people", "erase", "wrong@example.com", "--why", "Ticket 12", "--yes")
    menu(further_desk, "/deeds")
    further_desk.shows("Erase", "root user", "Ticket 12")
    expect(further_desk.page.locator("main")).not_to_contain_text("wrong@example.com")
    further_desk.find("wrong@example.com")
    further_desk.click("#person")
    further_desk.shows("Erase", "Ticket 12")


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


def test_the_console_shows_a_template_in_the_chosen_language(further_desk: Desk, bilingual: str) -> None:
    menu(further_desk, "/templates")
    further_desk.click(f"main a[href*='name={bilingual}']")
    further_desk.page.get_by_label("Language").select_option("fr")
    further_desk.click(further_desk.page.locator("main").get_by_role("button", name="Show"))
    further_desk.shows("Bonjour Ada", "Bonjour, Ada.")
