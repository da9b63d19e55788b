"""The console behind a sign-in in a real Chromium, with an OpenID provider for tests: `make browser`."""

from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import Stage, signed_in
from tests.browser.test_console_in_chromium import faults_of_console, mail_to_ada

api = pytest.importorskip("playwright.sync_api", reason="it needs a real Chromium: make browser")
expect = api.expect
EVE = "eve.adams@example.com"


@pytest.fixture(scope="module")
def sent(stage: Stage) -> str:
    """A mail that was delivered. Return the path to its page."""
    stage.put(**mail_to_ada("s-sent", to=EVE, subject="Your ticket", text="The seat is 12 A."))
    return "/message?id=s-sent"


def test_a_link_leads_a_person_with_the_contents_right_through_the_sign_in_to_the_whole_message(
    stage: Stage, chromium: Any, sent: str
) -> None:
    with signed_in(stage, chromium, "grace", sent) as page:
        assert page.url == f"{stage.team}{sent}"
        expect(page.locator("main .status").first).to_have_text("delivered")
        expect(page.locator("main")).to_contain_text(EVE)
        expect(page.locator("main")).to_contain_text("The seat is 12 A.")
        expect(page.get_by_role("button", name="Sign out")).to_have_attribute(
            "title", "Signed in as Grace, with the right contents"
        )
        assert faults_of_console(page) == []


def test_a_person_with_only_the_read_right_sees_masked_addresses_and_not_the_content_of_mails(
    stage: Stage, chromium: Any, sent: str
) -> None:
    with signed_in(stage, chromium, "ada", sent) as page:
        expect(page.locator("main")).to_contain_text("e***@example.com")
        for path in (sent, "/messages", "/"):
            page.goto(path)
            assert EVE not in page.content()
            assert "The seat" not in page.content()


def test_a_person_with_only_the_read_right_finds_a_mail_by_an_address_that_the_url_does_not_contain(
    stage: Stage, chromium: Any, sent: str
) -> None:
    with signed_in(stage, chromium, "ada") as page:
        page.get_by_role("searchbox", name="Find messages").fill(EVE)
        page.keyboard.press("Enter")
        page.get_by_role("link", name="Your ticket").click()
        expect(page.locator("main .status").first).to_have_text("delivered")
        assert "eve" not in page.url


@pytest.mark.parametrize(("name", "shown"), [("grace", EVE), ("ada", "e***@example.com")])
def test_the_csv_file_of_messages_has_whole_or_masked_addresses_according_to_the_persons_right(
    stage: Stage, chromium: Any, sent: str, name: str, shown: str, tmp_path: Path
) -> None:
    with signed_in(stage, chromium, name, "/messages") as page:
        expect(page.locator("main")).to_contain_text("Your ticket")
        with page.expect_download() as started:
            page.get_by_role("link", name="CSV", exact=True).click()
        assert started.value.suggested_filename == "messages local.csv"
        started.value.save_as(tmp_path / "list.csv")
        assert shown in (tmp_path / "list.csv").read_text()


def test_a_person_without_a_right_cannot_sign_in_and_gets_the_advice_to_ask_for_a_role(
    stage: Stage, chromium: Any
) -> None:
    with signed_in(stage, chromium, "eve") as page:
        expect(page.locator("body")).to_contain_text("Eve may not see this console. Ask for a role")
        expect(page.get_by_role("button", name="Sign in")).to_be_visible()
        assert page.context.cookies(stage.team) == []


def test_a_sign_out_makes_copies_of_the_sessions_cookie_invalid(
    stage: Stage, chromium: Any, sent: str
) -> None:
    with signed_in(stage, chromium, "grace", sent) as page:
        cookies = page.context.cookies(stage.team)
        assert [cookie["name"] for cookie in cookies] == ["__Host-mailroom"]
        page.get_by_role("button", name="Sign out").click()
        expect(page.locator("body")).to_contain_text("You have signed out.")
        page.context.add_cookies(cookies)
        page.goto(sent)
        expect(page.locator("body")).to_contain_text("You are not signed in.")
