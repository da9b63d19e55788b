"""The console in a real Chromium, over a local stage: `make browser`."""

import socket
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.browser.conftest import Stage, admitted

api = pytest.importorskip("playwright.sync_api", reason="it needs a real Chromium: make browser")
expect = api.expect
HOSTILE = """<title>was here</title><p>Hello, Ada</p>
<script>parent.document.title = "taken"; fetch("https://evil.example/script")</script>
<img src="https://evil.example/pixel.png" onerror="parent.document.title = 'taken'">
<svg onload="parent.document.title = 'taken'"></svg>
<img src="./people/erase"><video src="./people/erase"></video>
<link rel="stylesheet" href="https://evil.example/style.css"><style>@import url(https://evil.example/import.css);</style>
<iframe src="https://evil.example/frame"></iframe><meta http-equiv="refresh" content="0; url=https://evil.example/away">
<form action="https://evil.example/form" target="_top"><button>Press</button></form>
<a href="https://evil.example/link" target="_top">Go</a>"""


WIDE = """() => document.documentElement.scrollWidth <= window.innerWidth ? [] :
  [...document.querySelectorAll("body *")].filter(each => each.scrollWidth > each.clientWidth ||
    each.getBoundingClientRect().right > window.innerWidth
  ).map(each => "too wide: " + each.outerHTML.slice(0, 200))"""
PATHS = [
    "/",
    "/messages",
    "/messages?q=ada@example.com",
    "/people",
    "/people?recipient=ada@example.com",
    "/people/change?recipient=ada@example.com&do=suppress&channel=mail&why=asked",
    "/people/erase?recipient=ada@example.com",
    "/message",
    "/message?id=audited",
    "/message/resend?id=audited&channel=mail&force=1",
    "/message/settle?id=nobody",
    "/message/cancel?id=audited&channel=mail",
    "/lanes",
    "/docs?page=webhooks-failing",
    "/send?channel=mail&copy=audited",
    "/failures",
    "/selected",
    "/dead-letters",
    "/dead-letters/redrive?queue=mail",
    "/campaigns",
    "/campaigns?campaign=weekly-followers",
    "/campaigns/start?campaign=weekly-followers",
    "/campaigns/change?campaign=weekly-followers&run=gone&do=pause",
    "/campaigns/change?campaign=weekly-followers&run=gone&do=stop",
    "/templates",
    "/templates?name=weekly-followers",
    "/deeds",
]


def faults_of_console(page: Any) -> list[str]:
    """Return the violations that axe finds, and the elements that are wider than the window."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    found = axe.run(page).response["violations"]
    return [
        *(f"{each['id']}: {[node['html'] for node in each['nodes']]}" for each in found),
        *page.evaluate(WIDE),
    ]


def mail_to_ada(id_: str, **more: Any) -> dict[str, Any]:
    return {
        "id": id_,
        "event_type": "mail",
        "to": "ada@example.com",
        "subject": "Hello",
        "text": "Hi",
        **more,
    }


def find(page: Any, id_: str) -> None:
    """By the field on every page, whose answer is a list."""
    page.get_by_role("searchbox", name="Find messages").fill(id_)
    page.get_by_role("button", name="Find").first.click()
    page.locator(".stream a").first.click()
    expect(page.locator("dd.id").first).to_have_text(id_)


def test_the_console_finds_a_bounced_mail_in_three_clicks_lifts_its_suppression_and_resends_it(
    stage: Stage, page: Any
) -> None:
    stage.list_at_ses("ada+lifted@example.com")
    stage.put(**mail_to_ada("to-ada", to="ada+lifted@example.com", subject="Your ticket"))
    page.get_by_role("link", name="Messages").click()  # the first click
    page.get_by_role("searchbox", name="Find messages").fill("Ada+Lifted@example.com")
    page.get_by_role("button", name="Find").click()  # the second
    page.get_by_role("link", name="Your ticket").click()  # the third
    expect(page.get_by_role("heading", level=1)).to_have_text("Your ticket")
    expect(page.locator(".status").first).to_have_text("bounced")
    page.get_by_role("link", name="What keeps ada+lifted@example.com").click()
    page.get_by_text("Turn on").click()
    page.get_by_label("Why it is lifted").fill("She called")
    page.get_by_role("button", name="Lift").click()
    page.get_by_role("button", name="Lift").click()
    expect(page.get_by_text("ada+lifted@example.com is not suppressed")).to_be_visible()
    page.get_by_role("link", name="Your ticket").click()
    page.get_by_role("link", name="Send again").click()
    page.get_by_role("button", name="Send again").click()
    expect(page.locator(".status").first).to_have_text("delivered")


def test_a_hostile_mail_in_the_console_does_not_run_scripts_send_requests_or_leave_the_page(
    stage: Stage, page: Any
) -> None:
    left: list[str] = []

    def intercept(route: Any) -> None:  # requests that the page's policy stops do not arrive here
        left.append(route.request.url)
        route.abort()

    page.context.route("https://evil.example/**", intercept)
    page.context.route("**/people/erase", intercept)  # with the origin of the console
    stage.put(**mail_to_ada("hostile", html=HOSTILE))
    find(page, "hostile")
    frame = page.frame_locator("iframe")
    expect(frame.get_by_text("Hello, Ada")).to_be_visible()
    frame.get_by_role("button", name="Press").click()
    frame.get_by_text("Go").click()
    page.wait_for_timeout(500)
    assert page.url.startswith(f"{stage.console}/message?")
    expect(page).to_have_title("Hello – Mailroom local")  # noqa: RUF001 - as the page has it
    assert left == []


@pytest.mark.parametrize(
    "html",
    [
        "<iframe src={url}></iframe>",
        "<frameset><frame src={url}></frameset>",
        "<link rel=preconnect href={url}>",
        "<iframe srcdoc='&lt;link rel=preconnect href={url}&gt;&lt;iframe src={url}&gt;'></iframe>",
        "<object data={url}></object><embed src={url}>",
        "<template shadowrootmode=open><iframe src={url}></iframe></template>",
        "<meta http-equiv=refresh content='0; url={url}'>",
        "<a href={url}>Go</a>",
        "<a href={url} target=_blank>Go</a>",
        "<svg><a><text y=20>Go</text><animate attributeName=href values={url} /></a></svg>",
        "<map name=m><area shape=default href={url}></map><img usemap=#m alt=Go src=data:,>",
    ],
)
def test_a_mail_in_the_console_cannot_make_the_browser_connect_to_another_server(
    stage: Stage, page: Any, html: str
) -> None:
    id_ = f"connects-{hash(html)}"
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        url = f"http://127.0.0.1:{elsewhere.getsockname()[1]}"
        stage.put(**mail_to_ada(id_, html=html.replace("{url}", url)))
        find(page, id_)
        frame = page.frame_locator("iframe")
        frame.locator("body, frameset").first.wait_for(state="attached")
        for go in frame.get_by_text("Go").or_(frame.get_by_alt_text("Go")).all():
            go.click()
            go.click(modifiers=["Control"])
            go.click(button="middle")
        page.wait_for_timeout(500)
        assert len(page.context.pages) == 1
        elsewhere.setblocking(False)
        with pytest.raises(BlockingIOError):  # no further click waits
            elsewhere.accept()


def test_a_server_on_another_port_does_not_get_the_consoles_cookie_and_cannot_post_a_form_to_it(
    stage: Stage, page: Any
) -> None:
    """A server of another port does not get the cookie. Its page is of the same site, so a form that it sends
    to the console has the cookie: the guard must examine the origin of the form."""
    with ThreadingHTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as elsewhere:
        threading.Thread(target=elsewhere.serve_forever, daemon=True).start()
        visited = page.goto(f"http://127.0.0.1:{elsewhere.server_port}/")
        assert "cookie" not in visited.request.all_headers()
        with page.expect_navigation() as answered:
            page.evaluate(
                """url => {
                    const form = document.createElement("form");
                    Object.assign(form, {action: url, method: "post"});
                    document.body.append(form);
                    form.submit();
                }""",
                f"{stage.console}/dead-letters/redrive?queue=mail",
            )
        elsewhere.shutdown()
    assert "cookie" in answered.value.request.all_headers()
    assert answered.value.status == 403
    expect(page.get_by_role("heading", level=1)).to_have_text("Not allowed")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", PATHS)
def test_the_console_is_accessible_and_fits_the_width_of_a_phone(
    stage: Stage, page: Any, path: str, scheme: str
) -> None:
    if "audited" in path:
        stage.put(**mail_to_ada("audited", html="<html lang=en><title>Hi</title><main><h1>Hi</h1></main>"))
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f".{path}")
    assert faults_of_console(page) == []


@pytest.mark.parametrize("status", [0, 403, 502])
def test_a_page_shows_a_notice_while_its_live_updates_fail(page: Any, status: int) -> None:
    def fail(route: Any) -> None:
        route.fulfill(status=status, body="It went wrong.") if status else route.abort()

    alert = page.get_by_role("alert")
    expect(alert).to_have_count(0)
    page.route("**/*", fail)
    expect(alert).to_contain_text("could not update itself")
    expect(page.get_by_role("table").first).to_be_visible()
    page.unroute("**/*")
    expect(alert).to_have_count(0)


def test_a_live_update_waits_while_text_in_the_updated_part_of_a_page_is_selected(
    stage: Stage, page: Any
) -> None:
    stage.put(**mail_to_ada("read"))
    find(page, "read")
    expect(page.locator(".status").first).to_have_text("delivered")
    page.evaluate("getSelection().selectAllChildren(document.querySelector('#live dl'))")
    with page.expect_response(lambda response: "/message" in response.url):
        pass
    page.wait_for_timeout(200)
    assert "read" in page.evaluate("`${getSelection()}`")
    page.evaluate("getSelection().selectAllChildren(document.querySelector('h1'))")
    kept = page.locator(".status").first.element_handle()
    page.wait_for_function("node => !node.isConnected", arg=kept)


def test_a_live_update_leaves_an_opened_list_of_recipients_open(stage: Stage, page: Any) -> None:
    stage.put(**{**mail_to_ada("opened"), "to": [f"p{at}@example.com" for at in range(8)]})
    find(page, "opened")
    page.get_by_text("All 8").click()
    with page.expect_response(lambda response: "/message" in response.url):
        pass
    page.wait_for_timeout(200)
    expect(page.locator("details[open]").filter(has_text="p7@example.com")).to_have_count(1)


def test_a_live_update_reloads_a_page_of_the_console_whose_structure_has_changed(
    stage: Stage, page: Any
) -> None:
    stage.put(**mail_to_ada("one-id"))
    page.goto("./message?id=one-id")
    expect(page.locator(".status").first).to_be_visible()
    stage.put(id="one-id", event_type="sms", to="+16175550199", text="Hi")
    expect(page.get_by_role("heading", level=1)).to_have_text("Message")
    expect(page.get_by_role("main").get_by_role("listitem")).to_have_count(2)


def test_a_second_click_on_a_button_does_not_send_a_second_request(stage: Stage, page: Any) -> None:
    stage.put(**mail_to_ada("twice", to="rejected@simulator.amazonses.com"))
    find(page, "twice")
    expect(page.locator(".status").first).to_have_text("failed")
    page.get_by_role("link", name="Send again").click()
    posts: list[str] = []

    def slowly(route: Any) -> None:
        if route.request.method == "POST":
            posts.append(route.request.url)
            page.wait_for_timeout(1_000)
        route.continue_()

    page.route("**/message/resend*", slowly)
    button = page.get_by_role("button", name="Send again")
    button.evaluate("button => { button.click(); button.click(); }")
    expect(page.get_by_role("status")).to_contain_text("It is on its way again")
    assert len(posts) == 1


def test_the_keyboard_reaches_the_content_and_a_live_update_keeps_the_focus(stage: Stage, page: Any) -> None:
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.locator("#pause").focus()
    with page.expect_response(f"{stage.console}/"):
        pass  # the page has updated itself
    expect(page.locator("#pause")).to_be_focused()


def test_the_console_shows_a_mail_as_html_as_plain_text_and_as_its_item(stage: Stage, page: Any) -> None:
    stage.put(**mail_to_ada("looked-at", html="<h1>Hello</h1>", text="Hello in plain"))
    find(page, "looked-at")
    text = page.get_by_text("Hello in plain", exact=True)
    expect(page.frame_locator("iframe").get_by_role("heading")).to_have_text("Hello")
    expect(text).to_be_hidden()
    page.get_by_role("radio", name="Preview").focus()
    page.keyboard.press("ArrowRight")
    expect(text).to_be_visible()
    expect(page.locator("iframe")).to_be_hidden()
    page.get_by_text("Source", exact=True).click()
    expect(page.get_by_text('"id": "looked-at"')).to_be_visible()


def test_a_button_copies_the_id_and_the_status_of_a_message_to_the_clipboard(stage: Stage, page: Any) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    stage.put(**mail_to_ada("copied"))
    find(page, "copied")
    expect(page.locator(".status").first).to_have_text("delivered")
    page.get_by_role("button", name="Copy for a ticket").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()").startswith("local: mail copied\ndelivered since")


def test_one_click_shows_the_times_of_every_page_in_the_readers_time_zone(
    stage: Stage, chromium: Any
) -> None:
    stage.put(**mail_to_ada("timed", text="It was put at 2026-11-27 06:00:00 UTC"))
    with admitted(stage, chromium, timezone_id="Asia/Kolkata") as page:
        find(page, "timed")
        since = page.locator(".life time").first
        utc = since.inner_text()
        page.get_by_role("button", name="UTC").click()
        expect(page.locator(".lead")).to_contain_text("GMT+5:30")
        hours, minutes = map(int, utc[11:16].split(":"))
        later = (hours * 60 + minutes + 330) % 1440
        expect(since).to_contain_text(f"{later // 60:02}:{later % 60:02}:{utc[17:19]} GMT+5:30")
        expect(page.locator("pre").first).to_have_text("It was put at 2026-11-27 06:00:00 UTC")
        page.goto("./people?recipient=ada@example.com")
        expect(page.get_by_role("button", name="My time")).to_have_attribute("aria-pressed", "true")
        page.get_by_role("button", name="My time").click()
        page.goto("./message?id=timed&live=off")
        expect(since).to_have_text(utc)


def test_a_page_in_a_hidden_tab_does_not_send_requests_until_it_is_visible(stage: Stage, page: Any) -> None:
    stage.put(**mail_to_ada("hidden"))
    find(page, "hidden")
    page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
    page.wait_for_load_state("networkidle")
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.wait_for_timeout(7_000)
    assert requests == []
    with page.expect_response(lambda response: "/message" in response.url):
        page.evaluate("Object.defineProperty(document, 'hidden', {value: false})")


@pytest.mark.parametrize("path", ["/", "/people", "/inbox"])
def test_the_menu_on_a_phone_shows_the_entry_of_the_current_page(page: Any, path: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f".{path}")
    expect(page.locator("header nav [aria-current]")).to_be_in_viewport(ratio=1)
