"""`make screenshots`: the console's pages as pictures for README and docs. Look at them before you keep
them."""

import time
from typing import Any

from tests.browser.conftest import ROOT, Stage, admitted, launched, signed_in

PICTURES = ROOT / "docs" / "pictures"
DESK, PHONE = (1200, 760), (390, 760)
MOST = 1_740
"""Pixels from top to bottom."""
EVE = "eve@example.com"
"""Address that mails do not reach."""
WHO = ("ada", "grace", "mary")
ORDER = """<div style="font: 16px system-ui; max-width: 34rem; margin: 1rem auto; color: #222">
<h1 style="font-size: 1.4rem; color: #0b5cad">Your order is on its way</h1><p>Dear Ada,</p>
<p>your order <b>42</b> left our house this morning. It comes on Tuesday.</p>
<table style="border-collapse: collapse; width: 100%"><tr style="background: #eef"><th align="left">What</th>
<th align="right">How many</th></tr><tr><td>Difference engine, small</td><td align="right">1</td></tr>
<tr><td>Punched cards</td><td align="right">500</td></tr></table><p>Yours,<br>the shop</p></div>"""
SHOTS = [
    ("overview", "/", DESK, "light"),
    ("messages", "/messages", DESK, "light"),
    ("message", "/message?id=order-42", DESK, "light"),
    ("people", f"/people?recipient={EVE}", DESK, "light"),
    ("message-phone", "/message?id=letter-0", PHONE, "dark"),
    ("failures", "/failures", DESK, "light"),
    ("dead-letters", "/dead-letters?queue=mail", DESK, "dark"),
    ("campaign", "/campaigns?campaign=weekly-followers", DESK, "light"),
    ("template", "/templates?name=weekly-followers", DESK, "light"),
    ("inbox", "/inbox?channel=fax", DESK, "light"),
    ("phone", "/inbox?channel=sms", PHONE, "light"),
]
"""Name, path, size and colours."""
_SECONDS = 120.0
LATE_SECONDS = 5.0
"""How much later the local stage has metrics: mailroom_local/pump/metrics.py."""


def main() -> None:
    """Start a stage, send what the demo sends one of each kind of, and look."""
    stage = Stage()
    try:
        _send(stage)
        with launched() as chromium:
            _until_at_rest(stage, chromium)
            for name, path, size, scheme in SHOTS:
                with _visit(stage, chromium, size, scheme) as page:
                    page.goto(f".{path}{'&' if '?' in path else '?'}live=off")
                    _shoot(page, name)
            with _visit(stage, chromium) as page:
                page.goto("./inbox?channel=mail&live=off")
                page.get_by_role("link", name="Your order", exact=True).click()
                _shoot(page, "mail")
            with _visit(stage, chromium) as page:
                page.goto("./send?channel=mail")
                page.get_by_label("Id", exact=True).fill("welcome-17")
                page.get_by_role("button", name="Look at it first").click()
                _shoot(page, "send")
            view = {"width": 1280, "height": 760}
            with signed_in(stage, chromium, "ada", "/messages?live=off", viewport=view) as page:
                _shoot(page, "sign-in")
    finally:
        stage.close()


def _visit(stage: Stage, chromium: Any, size: tuple[int, int] = DESK, scheme: str = "light") -> Any:
    view = {"width": size[0], "height": size[1]}
    return admitted(stage, chromium, viewport=view, color_scheme=scheme)


def _shoot(page: Any, name: str) -> None:
    """Return a picture that ends at the end of the page. The window gets the page's height, because a part
    below the window, such as a frame, may not have been drawn."""
    page.wait_for_load_state("networkidle")
    height = int(page.evaluate("document.querySelector('main').getBoundingClientRect().bottom"))
    page.set_viewport_size({"width": page.viewport_size["width"], "height": min(height, MOST)})
    page.wait_for_load_state("networkidle")
    if page.locator("iframe").count():
        page.frame_locator("iframe").first.locator("h1").wait_for()
        page.wait_for_timeout(500)  # the heading exists, but is drawn a moment later
    page.screenshot(path=PICTURES / f"console-{name}.png")


def _until_at_rest(stage: Stage, chromium: Any) -> None:
    """Wait for what takes longest: a fax that is busy twice, its callback, and the campaign."""
    deadline = time.monotonic() + _SECONDS
    with _visit(stage, chromium) as page:
        for path, words in (
            ("/inbox?channel=webhook", "text=Fax sent successfully"),
            ("/campaigns?campaign=weekly-followers", "[aria-current=step]:text-is('Done')"),
        ):
            page.goto(f".{path}")
            page.locator(words).first.wait_for(timeout=1000 * (deadline - time.monotonic()))
    time.sleep(2 * LATE_SECONDS)  # until the figures are there too


def _send(stage: Stage) -> None:
    told = {"callback_url": f"{stage.receiver}/ok/callbacks"}
    mail: dict[str, Any] = {"event_type": "mail", "subject": "Welcome", "text": "Hello."}
    at_ses = "simulator.amazonses.com"
    order = {"subject": "Your order", "text": "It is on its way.", "html": ORDER}
    stage.put(**mail | order, id="order-42", to="ada@example.com", **told)
    for at, who in enumerate(WHO):
        stage.put(**mail, id=f"welcome-{at}", to=f"{who}@example.com")
        stage.put(**mail, id=f"invoice-{at}", to=f"rejected+{at}@{at_ses}")
        stage.bury("mail", {**mail, "id": f"late-{at}", "to": f"{who}@example.com", "attempt": 1})
    stage.list_at_ses(EVE)
    stage.put(**mail, id="welcome-eve", to=EVE)
    stage.mailroom("people", "stop", EVE, "--topic", "followers")
    stage.put(**mail, id="reminder-1", to="ada@", **told)
    stage.put(id="reminder-2", event_type="mail", to="ada@example.com", template="reminder")
    texts = (
        "Your code is 123456.",
        "Your order 42 is on its way. It comes on Tuesday.",
        "It is here. Thank you!",
    )
    for at, text in enumerate(texts):
        stage.put(id=f"code-{at}", event_type="sms", to="+16175551234", text=text)
    stage.put(id="device-1", event_type="push", to="android-device-1", platform="android", title="Your order")
    for at, number in enumerate(("+12025550112", "+12025550115")):
        fax = {"to": number, "pdf_url": f"https://example.com/letter-{at}.pdf"}
        stage.put(id=f"letter-{at}", event_type="fax", **fax, **told)
    stage.mailroom("campaign", "start", "weekly-followers", "--yes")


if __name__ == "__main__":
    main()
