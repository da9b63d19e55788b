"""The page of preferences in a real Chromium: `make browser`."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.browser.conftest import ROOT, STAGE_PYTHON
from tests.browser.test_console_in_chromium import WIDE

api = pytest.importorskip("playwright.sync_api", reason="it needs a real Chromium: make browser")
expect = api.expect
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def links() -> Iterator[dict[str, str]]:
    """Links to pages, by the name of the recipient."""
    environment = os.environ | {
        "PYTHONPATH": f"{ROOT}:{ROOT / 'lambdas'}",
        "POWERTOOLS_METRICS_NAMESPACE": "Mailroom",
    }
    process = subprocess.Popen(
        [STAGE_PYTHON, "-m", "tests.browser.preferences_server"],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    yield json.loads(process.stdout.readline())
    process.stdin.close()
    process.wait(60)
    process.stdout.close()


@contextmanager
def opened(chromium: Any, link: str, **options: Any) -> Iterator[Any]:
    """A page that a link opens, in a browser that fails the test for an error in its console."""
    context = chromium.new_context(viewport=PHONE, **options)
    page = context.new_page()
    # Without the policy, which axe needs, Chromium asks for an icon.
    page.route("**/favicon.ico", lambda route: route.fulfill(status=204))
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(link)
    yield page
    context.close()
    assert errors == []


def switch(page: Any, name: str) -> Any:
    return page.get_by_role("switch", name=name)


def faults_of_page(page: Any) -> list[str]:
    """Return the violations that axe finds, and the elements that are wider than the window."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [*(f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in found), *page.evaluate(WIDE)]


def test_a_switch_of_the_preferences_page_saves_without_a_reload_and_keeps_the_focus(
    chromium: Any, links: dict[str, str]
) -> None:
    with opened(chromium, links["ada"]) as page:
        page.evaluate("window.notReloaded = true")
        expect(switch(page, "News")).to_have_attribute("aria-checked", "true")
        switch(page, "News").click()
        expect(page.get_by_role("status")).to_have_text("Saved.")
        expect(switch(page, "News")).to_have_attribute("aria-checked", "false")
        expect(switch(page, "News")).to_be_focused()
        switch(page, "News").click()
        expect(switch(page, "News")).to_have_attribute("aria-checked", "true")
        assert page.evaluate("window.notReloaded")
        page.reload()
        expect(switch(page, "News")).to_have_attribute("aria-checked", "true")


def test_the_preferences_page_works_with_the_keyboard_alone(chromium: Any, links: dict[str, str]) -> None:
    with opened(chromium, links["bob"]) as page:
        page.keyboard.press("Tab")
        expect(switch(page, "News")).to_be_focused()
        page.keyboard.press("Space")
        expect(switch(page, "News")).to_have_attribute("aria-checked", "false")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(switch(page, "New followers")).to_have_attribute("aria-checked", "false")
        expect(switch(page, "New followers")).to_be_focused()


def test_the_preferences_page_saves_choices_even_if_scripts_are_disabled(
    chromium: Any, links: dict[str, str]
) -> None:
    with opened(chromium, links["eve"], java_script_enabled=False) as page:
        switch(page, "News").click()
        expect(page.get_by_role("status")).to_have_text("Saved.")
        expect(switch(page, "News")).to_have_attribute("aria-checked", "false")
        page.get_by_role("button", name="Nothing but what I must get").click()
        expect(switch(page, "New followers")).to_have_attribute("aria-checked", "false")


def test_one_button_of_the_preferences_page_turns_every_topic_off_and_a_switch_turns_one_on_again(
    chromium: Any, links: dict[str, str]
) -> None:
    with opened(chromium, links["dan"]) as page:
        page.get_by_role("button", name="Nothing but what I must get").click()
        for name in ("News", "New followers", "Offers"):
            expect(switch(page, name)).to_have_attribute("aria-checked", "false")
        expect(page.get_by_role("button", name="Nothing but what I must get")).to_be_focused()
        switch(page, "Offers").click()
        expect(switch(page, "Offers")).to_have_attribute("aria-checked", "true")
        expect(switch(page, "News")).to_have_attribute("aria-checked", "false")


def test_the_preferences_page_disables_the_switch_of_a_topic_that_was_switched_off_elsewhere(
    chromium: Any, links: dict[str, str]
) -> None:
    with opened(chromium, links["kim"]) as page:
        expect(switch(page, "Events")).to_be_disabled()
        expect(switch(page, "Events")).to_have_accessible_description(
            "This was switched off in another way. Please ask us if you want it again."
        )
        expect(switch(page, "News")).to_have_accessible_description("Once a month, what is new in the shop.")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("locale", ["en", "de", "ar"])
def test_the_preferences_page_is_accessible_and_fits_a_phone_in_both_color_schemes(
    chromium: Any, links: dict[str, str], scheme: str, locale: str
) -> None:
    # axe needs to run its own script, which the page's policy refuses.
    options = {"color_scheme": scheme, "locale": locale, "bypass_csp": True}
    with opened(chromium, links["max"], **options) as page:
        assert faults_of_page(page) == []
        page.get_by_role("switch").first.click()
        expect(page.get_by_role("status")).not_to_be_empty()
        assert faults_of_page(page) == []


def test_the_preferences_page_reports_a_failed_request_and_leaves_the_switch_unchanged(
    chromium: Any, links: dict[str, str]
) -> None:
    context = chromium.new_context(viewport=PHONE)
    page = context.new_page()
    page.goto(links["zoe"])
    context.set_offline(True)
    switch(page, "News").click()
    expect(page.get_by_role("status")).to_have_text("Please try again")
    expect(switch(page, "News")).to_have_attribute("aria-checked", "true")
    context.set_offline(False)
    switch(page, "News").click()
    expect(page.get_by_role("status")).to_have_text("Saved.")
    context.close()
