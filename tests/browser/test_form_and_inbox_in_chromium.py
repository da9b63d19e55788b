"""The console's form and its inbox in a real Chromium: `make browser`."""

import re
from typing import Any

import pytest

from tests.browser.conftest import ROOT, Stage
from tests.browser.test_console_in_chromium import PATHS, faults_of_console

api = pytest.importorskip("playwright.sync_api", reason="it needs a real Chromium: make browser")
expect = api.expect
CHANNELS = ("mail", "sms", "push", "fax", "webhook")
OF_FORM_AND_INBOX = [
    *(f"/send?channel={channel}" for channel in CHANNELS),
    *(f"/inbox?channel={channel}" for channel in CHANNELS),
]
NO_PAGES = {
    "/message/mail",
    "/campaigns/mail",
    "/inbox/mail/html",
    "/inbox/message",
    "/templates/mail",
    "/send/mail",
    "/selected/act",
    "/message/receipt",
}
"""Paths that answer with a frame's document, or lead to a page; and the receipt, whose test needs a delivered
fax."""


def text_message(id_: str, words: str) -> dict[str, str]:
    return {"id": id_, "event_type": "sms", "to": "+16175551234", "text": words}


def push_message(id_: str, title: str) -> dict[str, str]:
    return {"id": id_, "event_type": "push", "to": f"android-{id_}", "platform": "android", "title": title}


@pytest.fixture(scope="module")
def delivered(stage: Stage) -> None:
    """A message on each channel, a fax at its third attempt."""
    stage.put(**text_message("code-1", "Your code is 123456."))
    stage.put(**text_message("code-2", "Your order is on its way."))
    stage.put(**push_message("device-1", "Your order"))
    fax = {"id": "letter-1", "to": "+12025550112", "pdf_url": "https://example.com/letter.pdf"}
    stage.put(event_type="fax", callback_url=f"{stage.receiver}/ok/callbacks", **fax)
    stage.put(id="hook-1", event_type="webhook", url=f"{stage.receiver}/ok/orders", payload={"order": 42})


def test_a_mail_can_be_sent_from_the_form_with_the_keyboard_alone(page: Any) -> None:
    page.goto("./send?channel=mail")
    page.get_by_label("Id", exact=True).focus()
    page.keyboard.type("typed-1")
    page.keyboard.press("Tab")
    page.keyboard.press("Control+A")
    page.keyboard.type("grace@example.com")
    for _ in range(5):  # the template, the subject, the text, more attributes, the button
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Send a mail?")
    said = page.locator("main")
    expect(said).to_contain_text("it reaches nobody")
    expect(said).to_contain_text('"to": {"S": "grace@example.com"}')
    page.get_by_role("button", name="Send it").focus()
    page.keyboard.press("Enter")
    expect(page.locator("dd.id").first).to_have_text("typed-1")
    expect(page.locator(".status").first).to_have_text("delivered")
    page.goto("./inbox?channel=mail")
    expect(page.get_by_role("listitem").filter(has_text="grace@example.com")).to_contain_text("Welcome")


def test_the_form_to_send_a_mail_shows_why_an_address_is_invalid_at_its_field(page: Any) -> None:
    page.goto("./send?channel=mail")
    page.get_by_label("To", exact=False).first.fill("ada@")
    page.get_by_role("button", name="Look at it first").click()
    field = page.locator("#f-to")
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_have_accessible_description(re.compile("'ada@' is not a mail address"))
    expect(field).to_have_value("ada@")


@pytest.mark.usefixtures("delivered")
def test_the_inbox_shows_sms_as_a_conversation_attempts_of_faxes_and_checked_webhook_signatures(
    page: Any,
) -> None:
    page.goto("./inbox?channel=sms")
    talk = page.get_by_role("region", name="Texts to +16175551234")
    expect(talk.locator(".bubble")).to_have_count(2)
    page.goto("./inbox?channel=fax")
    expect(page.locator("td .status")).to_have_text(["busy", "busy", "delivered"])
    page.goto("./inbox?channel=webhook")
    expect(page.get_by_role("region", name="Callback")).to_have_count(3)
    hook = page.get_by_role("region", name="Webhook")
    expect(hook).to_contain_text("signature valid")
    expect(page.get_by_text("signature invalid")).to_have_count(0)
    hook.get_by_role("link", name="its message").click()
    expect(page.locator("dd.id").first).to_have_text("hook-1")


@pytest.mark.usefixtures("delivered")
def test_the_inbox_adds_new_messages_without_closing_opened_details_or_moving_the_focus(
    page: Any, stage: Stage
) -> None:
    page.goto("./inbox?channel=push")
    page.get_by_text("What each platform gets").click()
    page.locator("#tab-push").focus()
    stage.put(**push_message("device-2", "A second one"))
    expect(page.get_by_text("A second one").first).to_be_visible()
    expect(page.locator("details[open]")).to_have_count(1)
    expect(page.locator("#tab-push")).to_be_focused()


@pytest.mark.parametrize("size", [(390, 844), (1200, 800)], ids=["phone", "desk"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.usefixtures("delivered")
def test_the_form_and_the_inbox_are_accessible(page: Any, scheme: str, size: tuple[int, int]) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": size[0], "height": size[1]})
    found = {}
    for path in OF_FORM_AND_INBOX:
        page.goto(f".{path}&live=off")
        found[path] = faults_of_console(page)
    page.goto("./send?channel=mail")
    page.get_by_text("More attributes", exact=True).click()
    found["/send, with all fields"] = faults_of_console(page)
    page.get_by_role("button", name="Look at it first").click()
    found["/send, the step before"] = faults_of_console(page)
    page.get_by_role("button", name="Send it").click()
    expect(page.locator(".status").first).to_have_text("delivered")
    page.goto("./inbox?channel=mail")
    page.get_by_role("link", name="Welcome").first.click()
    expect(page.get_by_role("heading", name="Headers")).to_be_visible()
    found["/inbox/mail"] = faults_of_console(page)
    page.goto("./message?id=letter-1&channel=fax")
    page.get_by_role("link", name="Receipt", exact=True).click()
    expect(page.locator("main")).to_contain_text("delivered, as signalwire reported")
    found["/message/receipt"] = faults_of_console(page)
    assert {path: each for path, each in found.items() if each} == {}


def test_the_page_of_a_template_sends_a_test_mail_that_arrives_in_the_inbox(page: Any) -> None:
    page.goto("./templates")
    page.get_by_role("link", name="mail/weekly-followers").click()
    page.get_by_label("Example").select_option("one")
    page.get_by_role("button", name="Show").click()
    for width in ("desktop", "phone"):
        frame = page.frame_locator(f"iframe[title='The mail on a {width}']")
        expect(frame.get_by_role("heading", level=1)).to_have_text("One new follower this week")
    page.get_by_label("To").fill("tester@example.com")
    page.get_by_role("button", name="Send a test").click()
    expect(page.locator(".status").first).to_have_text("delivered")
    expect(page.locator("dd.id").first).to_contain_text("test-mail-")
    page.goto("./inbox?channel=mail")
    page.get_by_role("link", name="Ada, you have a new follower").first.click()
    expect(page.locator("main")).to_contain_text("X-Mailroom-Test")


def test_the_form_previews_the_mail_of_a_template_while_somebody_types_its_variables(page: Any) -> None:
    page.goto("./send?channel=mail")
    page.get_by_label("To", exact=True).fill("ada@example.com")
    for field in ("Subject", "Text"):
        page.get_by_label(field, exact=True).fill("")
    page.get_by_label("Template", exact=True).select_option("default")
    page.get_by_label("first_name").fill("Ada")
    page.get_by_label("last_name").fill("Lovelace")
    page.get_by_text("More attributes", exact=True).click()
    page.get_by_label("More variables").fill("shoe=7")
    page.get_by_label("To", exact=True).focus()
    frame = page.frame_locator("iframe[title='The HTML of the mail']")
    expect(frame.locator("body")).to_contain_text("Dear Ada Lovelace,")
    expect(page.locator("main")).to_contain_text("Unused attributes: shoe.")
    expect(page.get_by_label("To", exact=True)).to_have_value("ada@example.com")


def test_the_form_sends_a_copy_of_a_mail_to_another_address_with_an_edited_list_variable(
    page: Any, stage: Stage
) -> None:
    followers = {"first_name": "Ada", "new_followers": 2, "followers": ["Grace", "Mary"]}
    wrong = {"id": "mistyped", "event_type": "mail", "to": "rejected@simulator.amazonses.com"}
    stage.put(**wrong, template="weekly-followers", topic="followers", **followers)
    page.goto("./message?id=mistyped")
    page.get_by_role("link", name="Send to another address").click()
    expect(page.get_by_label("To", exact=True)).to_be_focused()
    page.keyboard.type("ada@example.com")
    page.get_by_role("button", name="Add a row to followers").click()
    expect(page.get_by_label("followers, row 3")).to_be_focused()
    page.keyboard.type("Emmy")
    page.get_by_role("button", name="Remove row 2 of followers").click()
    expect(page.get_by_label("followers, row 2")).to_have_value("Emmy")
    frame = page.frame_locator("iframe[title='The HTML of the mail']")
    expect(frame.locator("main")).to_contain_text("Emmy")
    expect(frame.locator("main")).not_to_contain_text("Mary")
    assert faults_of_console(page) == []
    page.get_by_role("button", name="Look at it first").click()
    page.get_by_role("button", name="Send it").click()
    expect(page.locator("dd.id").first).to_have_text(re.compile("mistyped-again-"))
    expect(page.locator(".status").first).to_have_text("delivered")


def test_the_accessibility_tests_examine_every_page_of_the_console() -> None:
    server = (ROOT / "mailroom_ops" / "console" / "server.py").read_text()
    there = {*re.findall(r'Page\("([^"]+)"', server)} - NO_PAGES
    assert there == {path.partition("?")[0] for path in [*PATHS, *OF_FORM_AND_INBOX, "/inbox/mail"]}
