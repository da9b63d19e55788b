"""`make screenshots`: the console's pictures in docs/pictures, of a stage that has something to show."""

import os
import sys
import time
from typing import Any

from playwright.sync_api import sync_playwright

from tests.browser.conftest import CHROMIUM, ROOT, Stage

PICTURES = ROOT / "docs" / "pictures"
WIDE, PHONE = {"width": 1100, "height": 760}, {"width": 390, "height": 760}
SETTLE_SECONDS = 15
"""Until everything has its outcome, on a busy machine too."""
SHOTS: tuple[tuple[str, str, dict[str, int], str], ...] = (
    ("console-overview", "/?live=off", WIDE, "light"),
    ("console-message", "/message?id=order-1042&live=off", WIDE, "light"),
    ("console-message-phone", "/message?id=fax-17&live=off", PHONE, "dark"),
    ("console-failures", "/failures?live=off", WIDE, "light"),
    ("console-dead-letters", "/dead-letters?queue=mail", WIDE, "light"),
)


def main() -> None:
    """Take all of them."""
    stage = Stage()
    try:
        _fill(stage)
        with sync_playwright() as playwright:
            options = ["--no-sandbox"] if sys.platform == "linux" and os.getuid() == 0 else []
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
            for shot in SHOTS:
                _take(browser, stage, *shot)
            browser.close()
    finally:
        stage.close()


def _fill(stage: Stage) -> None:
    """Messages that come to every end."""
    receiver = f"{stage.providers}/receiver/ok"
    mail = {"event_type": "mail", "to": "ada@example.com"}
    stage.put(
        **mail, id="order-1042", first_name="Ada", last_name="Lovelace", callback_url=receiver, topic="orders"
    )
    stage.put(**{**mail, "to": "bounce@simulator.amazonses.com"}, id="order-1043", subject="Hi", text="Hi")
    stage.put(**mail, id="order-1044", template="order-shiped")
    stage.put(**mail, id="order-1045", subject="Your order", text="Hi", expires_at="2026-01-01T00:00:00Z")
    stage.put(**{**mail, "to": "ada@example"}, id="order-1046", subject="Your order", text="Hi")
    stage.put(
        id="fax-17",
        event_type="fax",
        to="+12025550112",
        pdf_url="https://example.com/letter.pdf",
        callback_url=receiver,
    )
    stage.put(id="code-7", event_type="sms", to="+12025550111", text="Your code is 123456")
    stage.bury("mail", {**mail, "id": "order-1041", "subject": "Hi", "text": "Hi", "attempt": 1})
    time.sleep(SETTLE_SECONDS)


def _take(browser: Any, stage: Stage, name: str, path: str, viewport: dict[str, int], scheme: str) -> None:
    context = browser.new_context(base_url=stage.console, viewport=viewport, color_scheme=scheme)
    page = context.new_page()
    page.goto(stage.url)
    page.wait_for_url(f"{stage.console}/")
    page.goto(path)
    page.wait_for_load_state("networkidle")
    page.screenshot(path=PICTURES / f"{name}.png")
    context.close()


if __name__ == "__main__":
    main()
