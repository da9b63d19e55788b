"""Table of the console's pages, and the HTTP server that serves them."""

import itertools
import re
import secrets
import signal
import socket
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote

import uvicorn
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from msgspec import structs
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request as HttpRequest
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from mailroom.clock import iso
from mailroom.errors import quantity
from mailroom.providers.meaning import KINDS
from mailroom_ops.console.guard import ADDRESS, Guard
from mailroom_ops.console.pages import (
    campaigns,
    dead_letters,
    deeds,
    docs,
    failures,
    form,
    inbox,
    lanes,
    message,
    messages,
    overview,
    people,
    selected,
    templates,
)
from mailroom_ops.console.site import Answer, Download, Frame, Goto, Page, Request, Shown, Site, View, link
from mailroom_ops.shared.deeds import with_names
from mailroom_ops.shared.screen import Refused, aws_fault_types, percent, print_line, sentences_of
from mailroom_ops.shared.stage_queues import DeployedStage
from mailroom_ops.shared.terminal import printable
from mailroom_ops.shared.times import clock, duration, exactly, short

if TYPE_CHECKING:
    import boto3

PAGES = (
    Page("/", "Overview", overview.show, menu=True),
    Page("/lanes", "Lanes", lanes.show, writes=True, of="Overview"),
    Page("/docs", "Documentation", docs.show, of="Overview"),
    Page("/messages", "Messages", messages.show, menu=True),
    Page("/message", "Message", message.show, of="Messages"),
    Page("/selected", "Selected messages", selected.show, writes=True, of="Messages"),
    Page("/selected/act", "Selected messages", selected.act, writes=True, of="Messages"),
    Page("/failures", "Failures", failures.show, menu=True),
    Page("/dead-letters", "Dead letters", dead_letters.show, menu=True),
    Page("/dead-letters/redrive", "Put back", dead_letters.redrive, writes=True),
    Page("/campaigns", "Campaigns", campaigns.show, menu=True),
    Page("/campaigns/start", "Start", campaigns.start, writes=True),
    Page("/campaigns/mail", "Mail", campaigns.frame),
    Page("/campaigns/change", "Change a run", campaigns.change, writes=True),
    Page("/templates", "Templates", templates.show, menu=True, writes=True),
    Page("/templates/mail", "Mail", templates.frame),
    Page("/message/mail", "Mail", message.frame, of="Messages"),
    Page("/message/receipt", "Receipt", message.receipt, of="Messages"),
    Page("/message/resend", "Send again", message.resend, writes=True, of="Messages"),
    Page("/message/settle", "Record an outcome", message.settle, writes=True, of="Messages"),
    Page("/message/cancel", "Cancel", message.cancel, writes=True, of="Messages"),
    Page("/people", "People", people.show, menu=True),
    Page("/people/change", "Change", people.change, writes=True),
    Page("/people/erase", "Erase", people.erase, writes=True),
    Page("/deeds", "Activity", deeds.show, menu=True),
    Page("/send", "Send", form.show, menu=True, writes=True),
    Page("/send/mail", "Mail", form.frame),
    Page("/inbox", "Inbox", inbox.show, menu=True, local=True),
    Page("/inbox/mail", "Mail", inbox.mail, local=True),
    Page("/inbox/mail/html", "Mail", inbox.frame, local=True),
    Page("/inbox/message", "Message", inbox.message, local=True),
)
"""Table of the pages: to add a page, add a row. The menu has the rows with `menu`, in this order."""
_HERE = Path(__file__).parent
_HTMX = "htmx-2.0.11.min.js"
_NOT_THERE = {404: "There is no such page.", 405: "This page accepts no form."}
_MOST_SHOWN = 100_000
"""Maximum number of characters of a text on a page; longer texts are cut off."""
_INERT = (
    "sandbox allow-same-origin; default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
    "frame-ancestors 'self'"
)
"""Content security policy of a document in a frame: without scripts, forms and content of other hosts. It has
the console's origin, so that the page can measure its height; only scripts could misuse the origin."""
_CONNECTS = re.compile("<(?=link|meta|base|i?frame|object|embed|area)", re.IGNORECASE)
"""Start of an element for which browsers resolve a host name or connect to a host despite the policy
_INERT."""
_NO_MARKS = re.compile("[^\u061c\u200e\u200f]+")
"""Text between directional marks, with which Arabic and Hebrew texts may begin. These marks do not reverse
the order of letters, and are not removed."""
_LINK = re.compile(r"(?:(?<=<)|(?<=</))a(?=[\s/>])", re.IGNORECASE)
"""Name of a link element, in its start or end tag: a click would connect to a host, and may open a page
there."""


def serve(session: "boto3.Session", stage: str, port: int, *, browser: bool) -> None:
    """Serve a stage's console until Ctrl-C or SIGTERM. Raises Refused if the port is taken, and NotDeployed
    if the stage is not deployed."""
    DeployedStage.of(session, stage)
    # asyncio sets TCP_NODELAY only if the protocol is named; without it, small packets wait for 40 ms.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((ADDRESS, port))
            listening.listen()  # before uvicorn starts, so that a browser that opens the URL at once waits
        except OSError as error:
            raise Refused(
                f"Port {port} cannot be used: {error.strerror}. Choose another with --port."
            ) from None
        port = listening.getsockname()[1]
        home, token = f"/{secrets.token_urlsafe(16)}", secrets.token_urlsafe(32)
        site = Site(session, stage)
        app = Guard(application(site, home), port, home, token)
        config = uvicorn.Config(
            app, access_log=False, log_level="warning", server_header=False, timeout_graceful_shutdown=3
        )
        # uvicorn shuts down on a signal, and then raises it again. SIGTERM would end the process there, so it
        # is handled like Ctrl-C, which returns to this function.
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            url = f"http://{ADDRESS}:{port}{home}/?token={token}"
            print_line(url)
            if browser:
                print_line(f"The console of {stage} opens in the browser. Ctrl-C ends it.")
                webbrowser.open(url)
            uvicorn.Server(config).run(sockets=[listening])
        except KeyboardInterrupt:
            return
        finally:
            signal.signal(signal.SIGTERM, before)
            for job in site.jobs.values():
                job.stopping = True


class Refusal(View, frozen=True):
    """Values of the page that shows an error."""

    sentences: list[str]
    unsure: bool
    """Whether the action may have been carried out despite the error."""


def application(site: Site, home: str) -> ASGIApp:
    """Return the application without its guard. `home` is the path below which all pages are."""
    environment = environment_of(site, home)
    routes = [_route(site, environment, page) for page in PAGES if site.stage == "local" or not page.local]

    async def fault(_: HttpRequest, error: Exception) -> Response:
        if isinstance(error, HTTPException):
            answer = _refusal([_NOT_THERE.get(error.status_code, error.detail)], error.status_code)
        else:
            answer = _refusal(["The console has an internal error; see its terminal."], 500)
        return _rendered(site, environment, PAGES[0], Request(), answer)

    handlers: Any = {HTTPException: fault, Exception: fault}
    assets = Mount("/assets", StaticFiles(directory=_HERE / "assets"))
    return Starlette(routes=[*routes, assets], exception_handlers=handlers)


def environment_of(site: Site, home: str) -> Environment:
    """Return the environment of the templates, with the filters and variables that all templates can use."""

    def located(path: str, /, **query: str | None) -> str:
        return home + link(path, **query)

    environment = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "short": short,
        "clock": clock,
        "duration": duration,
        "gap": exactly,
        "figure": lambda count: f"{count:,}",
        "quantity": quantity,
        "percent": percent,
        "exact": escape,
        "named": lambda text: with_names(KINDS.get(f"{text}", f"{text}")),
    }
    menu = [page for page in PAGES if page.menu and (site.stage == "local" or not page.local)]
    environment.globals |= {
        "stage": site.stage,
        "menu": menu,
        "link": located,
        "htmx": _HTMX,
        "most_shown": _MOST_SHOWN,
    }
    return environment


def _route(site: Site, environment: Environment, page: Page) -> Route:
    async def endpoint(request: HttpRequest) -> Response:
        home: str = request.scope["root_path"]
        form: dict[str, str] | None = None
        if request.method == "POST":
            pairs = parse_qsl((await request.body()).decode("utf-8", "replace"), keep_blank_values=True)
            # Browsers send lines with CRLF: https://html.spec.whatwg.org/#constructing-the-form-data-set
            # The values of a field that occurs several times, such as a checkbox of a list, become lines.
            form = {}
            for name, text in pairs:
                line = text.replace("\r\n", "\n")
                form[name] = f"{form[name]}\n{line}" if name in form else line
        page_request = Request(dict(request.query_params), form, "hx-request" in request.headers)
        return await run_in_threadpool(_respond, site, environment, page, page_request, home)

    return Route(page.path, endpoint, methods=["GET", "POST"] if page.writes else ["GET"])


def _respond(site: Site, environment: Environment, page: Page, request: Request, home: str) -> Response:
    try:
        answer: Answer = page.show(site, request)
    except aws_fault_types() as error:
        ours = isinstance(error, Refused)
        unsure = request.form is not None and request["step"] != "preview" and not ours
        answer = _refusal(sentences_of(error, site.stage), 400 if ours else 502, unsure=unsure)
    match answer:
        case Goto(url):
            return RedirectResponse(home + url, 303)
        case Frame(html):
            return HTMLResponse(_inert(html), headers={"content-security-policy": _INERT})
        case Download(name, lines):
            headers = {"content-disposition": f"attachment; filename*=UTF-8''{quote(name)}"}
            # Spreadsheets read a file as UTF-8 if it begins with a byte order mark.
            return StreamingResponse(
                itertools.chain(["\ufeff"], lines), headers=headers, media_type="text/csv"
            )
    return _rendered(site, environment, page, request, answer)


def _rendered(site: Site, environment: Environment, page: Page, request: Request, answer: Shown) -> Response:
    title, view = answer.title or page.title, structs.asdict(answer.view)
    text = environment.get_template(answer.view.file_name()).render(
        view, page=page, title=title, request=request, now=iso(site.clock())
    )
    return HTMLResponse(text, answer.status)


def _refusal(sentences: list[str], status: int, *, unsure: bool = False) -> Shown:
    return Shown(Refusal(sentences, unsure), "That did not work", status)


def _inert(html: str) -> str:
    """Return a document without elements that connect to a host. The name of an element directly follows its
    `<`, so text replacement is enough: `<link rel=…>` becomes `<bgsound link rel=…>`, and `<a href=…>`
    becomes `<span href=…>`. Browsers no longer play `bgsound`, and allow it wherever they allow `link`."""
    return _LINK.sub("span", _CONNECTS.sub("<bgsound ", html))


def _shown(value: Any) -> Any:
    """Make a value safe to show. A text from outside could reverse the direction of text, and show `exe.txt`
    as `txt.exe`. Values that a form sends back unchanged use the filter `exact` instead."""
    if value is None:
        return ""
    text = isinstance(value, str) and not isinstance(value, Markup)
    return _NO_MARKS.sub(lambda match: printable(match[0]), value) if text else value
