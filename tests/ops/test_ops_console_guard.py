"""Requests that the console accepts, and requests that it refuses."""

import re
import signal
import socket
from pathlib import Path

import boto3
import pytest
from typer.testing import CliRunner

from mailroom_ops import cli
from mailroom_ops.console.application import application
from mailroom_ops.console.guard import Guard
from mailroom_ops.console.server import PAGES as PAGES_OF_ALL
from tests.support.ops.console import HOME, HOST, ORIGIN, PORT, TOKEN, Browser
from tests.support.ops.repair import RepairStage, repair_stage
from tests.support.signals import interrupts_handled_by

STAGE = repair_stage
FORM = {"id": "m", "channel": "mail"}
NAVIGATION = {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
PAGES = (
    *("/", "/message", "/message/mail", "/failures", "/dead-letters", "/campaigns"),
    "/assets/console.css",
)


@pytest.fixture
def browser_without_pages() -> Browser:
    """A browser that was let in, of a console without a stage."""
    return Browser(boto3.Session(region_name="us-east-1")).enter()


def test_the_token_in_the_url_is_exchanged_for_a_cookie_that_scripts_and_other_sites_do_not_get(
    browser_without_pages: Browser,
) -> None:
    reply = Browser(browser_without_pages.session).get(f"/?token={TOKEN}")
    assert reply.status == 200
    cookie = reply.headers["set-cookie"]
    assert cookie.startswith(f"mailroom-console-{PORT}=")
    assert cookie.endswith(f"; Path={HOME}/; HttpOnly; SameSite=Strict")
    assert TOKEN not in cookie + reply.text


@pytest.mark.parametrize("path", PAGES)
def test_a_page_of_the_console_is_refused_without_the_valid_cookie(
    browser_without_pages: Browser, path: str
) -> None:
    browser_without_pages.cookie = ""
    assert browser_without_pages.get(path).status == 403
    browser_without_pages.cookie = f"mailroom-console-{PORT}=guessed"
    assert browser_without_pages.get(path).status == 403
    browser_without_pages.cookie = "no=cookie; ="
    assert browser_without_pages.get(path).status == 403


@pytest.mark.parametrize(
    "url", ["/", HOME, "/message", "/another-home/", f"/before{HOME}/", "/assets/console.css"]
)
def test_a_path_without_the_secret_prefix_is_refused_and_sets_no_cookie(
    browser_without_pages: Browser, url: str
) -> None:
    """A cookie for such a path would go to the servers of other ports too."""
    reply = browser_without_pages.ask_anywhere("GET", url, {})
    assert reply.status == 403
    assert HOME not in reply.text
    assert (
        "set-cookie"
        not in browser_without_pages.ask_anywhere("GET", f"{url}?token={TOKEN}", {"cookie": ""}).headers
    )


def test_a_tab_of_an_ended_console_cannot_act_on_a_later_console_on_the_same_port(
    browser_without_pages: Browser,
) -> None:
    following = Browser(browser_without_pages.session, "prod")
    following._app = Guard(application(following.site, "/another", PAGES_OF_ALL), PORT, "/another", TOKEN)
    entered = following.ask_anywhere("GET", f"/another/?token={TOKEN}", {})
    cookie = entered.headers["set-cookie"].partition(";")[0]
    assert following.ask_anywhere("GET", "/another/assets/console.css", {"cookie": cookie}).status == 200
    # The browser would not even send the new cookie to the old path.
    posted = {"origin": ORIGIN, "sec-fetch-site": "same-origin", "cookie": cookie}
    assert following.ask_anywhere("POST", f"{HOME}/dead-letters/redrive", posted, b"queue=mail").status == 403
    assert following.site.jobs == {}


@pytest.mark.parametrize(
    "neighbour",
    ["theme=dark mode; {}", "a b=c; {}", '"; {}', "é=1; {}", "{}; x", "mailroom-console-4711=old; {}"],
)
def test_cookies_of_other_ports_do_not_lock_a_browser_out(
    browser_without_pages: Browser, neighbour: str
) -> None:
    browser_without_pages.cookie = neighbour.format(browser_without_pages.cookie)
    assert browser_without_pages.get("/assets/console.css").status == 200


def test_a_page_of_the_console_accepts_a_query_parameter_named_path(browser_without_pages: Browser) -> None:
    assert browser_without_pages.get("/message", path="x").status == 200
    assert browser_without_pages.get("/failures", path="x").status != 500


@pytest.mark.parametrize("query", ["token=wrong", "token=", "token", f"nekot={TOKEN}", f"token=%00{TOKEN}"])
def test_the_console_refuses_a_wrong_token(browser_without_pages: Browser, query: str) -> None:
    browser_without_pages.cookie = ""
    reply = browser_without_pages.get(f"/?{query}")
    assert (reply.status, "set-cookie" in reply.headers) == (403, False)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        f"evil.example:{PORT}",
        "127.0.0.1",
        "127.0.0.1:80",
        f"[::1]:{PORT}",
        f"localhost:{PORT}",
        f"{HOST}.evil.example",
        "",
    ],
)
def test_a_request_with_another_host_header_is_refused_despite_a_valid_token(
    browser_without_pages: Browser, host: str
) -> None:
    assert browser_without_pages.get("/assets/console.css", {"host": host}).status == 403
    assert "set-cookie" not in browser_without_pages.get(f"/?token={TOKEN}", {"host": host}).headers


def test_a_host_header_without_a_port_is_accepted_on_port_80(browser_without_pages: Browser) -> None:
    browser_without_pages._app = Guard(
        application(browser_without_pages.site, HOME, PAGES_OF_ALL), 80, HOME, TOKEN
    )
    entered = browser_without_pages.get(f"/?token={TOKEN}", {"host": "127.0.0.1"})
    cookie = entered.headers["set-cookie"].partition(";")[0]
    assert (
        browser_without_pages.get("/assets/console.css", {"host": "127.0.0.1", "cookie": cookie}).status
        == 200
    )
    assert browser_without_pages.get("/assets/console.css", {"host": HOST, "cookie": cookie}).status == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "http://127.0.0.1:4712"},
        {"origin": f"https://{HOST}"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": ORIGIN, "sec-fetch-site": "cross-site"},
    ],
    ids=lambda each: " ".join(each.values()),
)
def test_the_console_refuses_a_request_of_another_sites_page(
    browser_without_pages: Browser, headers: dict[str, str]
) -> None:
    assert browser_without_pages.get("/assets/console.css", headers).status == 403
    assert browser_without_pages.post("/message/resend", FORM, headers).status == 403


def test_a_form_without_an_origin_is_refused(browser_without_pages: Browser) -> None:
    assert browser_without_pages.post("/message/resend", FORM, {}).status == 403
    assert browser_without_pages.post("/message/resend", FORM, {"sec-fetch-site": "none"}).status == 403


def test_a_form_of_excessive_or_unknown_length_is_refused(browser_without_pages: Browser) -> None:
    for length in ("5000000", "", "many", "9" * 40):
        headers = {"origin": ORIGIN, "content-length": length}
        assert browser_without_pages.post("/message/resend", FORM, headers).status == 413
    in_chunks = {"origin": ORIGIN, "transfer-encoding": "chunked"}
    assert browser_without_pages.post("/message/resend", FORM, in_chunks).status == 413


def test_a_read_only_page_refuses_a_form(browser_without_pages: Browser) -> None:
    for path in PAGES[:-1]:
        assert browser_without_pages.post(path, FORM).status == 405


def test_the_url_of_the_console_lets_a_second_browser_in_too(browser_without_pages: Browser) -> None:
    assert Browser(browser_without_pages.session).enter().get("/assets/console.css").status == 200
    cookie, browser_without_pages.cookie = browser_without_pages.cookie, ""
    assert browser_without_pages.enter().cookie == cookie


def test_the_url_of_the_console_can_be_opened_from_another_site(browser_without_pages: Browser) -> None:
    browser_without_pages.cookie = ""
    reply = browser_without_pages.get(f"/?token={TOKEN}", {"sec-fetch-site": "cross-site", **NAVIGATION})
    assert reply.status == 200
    # A redirect would belong to the visit from elsewhere, and the browser would keep the cookie back.
    assert 'http-equiv="refresh"' in reply.text


@pytest.mark.parametrize("path", ["/assets/console.css", "/nowhere", f"/?token={TOKEN}", "/?token=no"])
def test_every_response_has_a_strict_content_security_policy(
    browser_without_pages: Browser, path: str
) -> None:
    headers = browser_without_pages.get(path).headers
    policy = headers["content-security-policy"]
    for rule in ("default-src 'none'", "script-src 'self'", "form-action 'self'", "frame-ancestors 'none'"):
        assert rule in policy
    assert "unsafe" not in policy
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"


def test_an_asset_path_that_leaves_the_folder_or_is_unknown_is_answered_with_404(
    browser_without_pages: Browser,
) -> None:
    for path in ("/assets/../guard.py", "/assets/..%2fguard.py", "/assets/guard.py", "/assets/"):
        assert browser_without_pages.get(path).status == 404


def test_the_console_exits_with_2_before_it_prints_a_url_if_the_stage_is_not_deployed(
    stage: RepairStage,
) -> None:
    result = CliRunner().invoke(cli.app, ["console", "--stage", "prod", "--no-browser"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert "There is no function mailroom-prod-dispatch" in result.stderr


def test_the_console_prints_only_a_url_with_the_loopback_address_and_a_random_path(
    stage: RepairStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[tuple[str, int]] = []
    monkeypatch.setattr(
        "uvicorn.Server.run", lambda _, sockets: served.extend(each.getsockname() for each in sockets)
    )
    monkeypatch.setattr("webbrowser.open", lambda _: pytest.fail("nobody asked for a browser"))
    result = CliRunner().invoke(cli.app, ["console", "--no-browser"])
    assert (result.exit_code, result.stderr) == (0, "")
    ((address, port),) = served
    assert address == "127.0.0.1"
    assert re.fullmatch(rf"http://127\.0\.0\.1:{port}/[\w-]{{22}}/\?token=[\w-]{{43}}\n", result.stdout)
    another = CliRunner().invoke(cli.app, ["console", "--no-browser"]).stdout
    assert another.split("/")[3] != result.stdout.split("/")[3]


def test_the_console_does_not_start_on_a_port_in_use(stage: RepairStage) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = CliRunner().invoke(cli.app, ["console", "--no-browser", "--port", str(port)])
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"Port {port} cannot be used: Address already in use. Choose another with --port." in result.stderr


def test_the_console_opens_the_browser_after_its_port_listens(
    stage: RepairStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[int] = []

    def opened(url: str) -> None:
        with socket.socket() as visitor:
            answers.append(visitor.connect_ex(("127.0.0.1", int(url.split(":")[2].partition("/")[0]))))

    monkeypatch.setattr("webbrowser.open", opened)
    monkeypatch.setattr("uvicorn.Server.run", lambda _, sockets: None)
    assert CliRunner().invoke(cli.app, ["console"]).exit_code == 0
    assert answers == [0]


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_console_with_exit_code_0(
    stage: RepairStage, monkeypatch: pytest.MonkeyPatch, end: signal.Signals
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr("uvicorn.Server.run", lambda _, sockets: signal.raise_signal(end))
    with interrupts_handled_by(signal.default_int_handler):
        result = CliRunner().invoke(cli.app, ["console", "--no-browser"])
    assert (result.exit_code, result.stderr) == (0, "")
    assert signal.getsignal(signal.SIGTERM) is before


def test_every_url_in_a_template_of_the_console_is_made_by_the_function_link() -> None:
    for template in Path("mailroom_ops/console/templates").glob("*.html"):
        urls = re.findall(r'\b(?:href|src|action|hx-get|hx-post)="([^"#]*)', template.read_text())
        assert [each for each in urls if each and not each.startswith(("{{ link(", "data:"))] == [], template
