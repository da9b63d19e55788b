"""Application of the console: its routes, and the answers of its pages as responses."""

import itertools
import re
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl
from urllib.parse import quote as urlencoded

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
from mailroom.telemetry import logger
from mailroom_ops.console.site import (
    BYTE_ORDER_MARK,
    Answer,
    Download,
    Frame,
    Goto,
    Page,
    Request,
    Shown,
    Site,
    View,
    disposition,
    link,
)
from mailroom_ops.console.viewer import Viewer
from mailroom_ops.shared.deeds import with_names
from mailroom_ops.shared.printable import printable
from mailroom_ops.shared.refusals import Refused, aws_fault_types, percent, sentences_of
from mailroom_ops.shared.times import clock, duration, exactly, short

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
_viewer = ContextVar[Viewer | None]("viewer", default=None)
"""Person for whom the current thread makes a page."""


class Refusal(View, frozen=True):
    """Values of the page that shows an error."""

    sentences: list[str]
    unsure: bool
    """Whether the action may have been carried out despite the error."""


def application(site: Site, home: str, pages: Sequence[Page]) -> ASGIApp:
    """Return the application of `pages` without its guard. `home` is the path below which all pages are."""
    pages = [page for page in pages if site.stage == "local" or not page.local]
    environment = environment_of(site, home, pages)
    routes = [_route(site, environment, page) for page in pages]

    async def fault(_: HttpRequest, error: Exception) -> Response:
        if isinstance(error, HTTPException):
            answer = _refusal([_NOT_THERE.get(error.status_code, error.detail)], error.status_code)
        else:
            answer = _refusal(["The console has an internal error; see its terminal."], 500)
        return _rendered(site, environment, pages[0], Request(), answer)

    handlers: Any = {HTTPException: fault, Exception: fault}
    assets = Mount("/assets", StaticFiles(directory=_HERE / "assets"))
    return Starlette(routes=[*routes, assets], exception_handlers=handlers)


def environment_of(site: Site, home: str, pages: Sequence[Page]) -> Environment:
    """Return the environment of the templates, with the filters and variables that all templates can use."""

    def located(path: str, /, **query: str | None) -> Markup:
        # The filter that masks texts must not change a link, whose parts are sealed instead.
        return escape(home + _sealed(path, query))

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
        "exact": lambda text: escape(_seal(f"{text}")),
        "urlencode": lambda text: Markup(urlencoded(_mask(f"{text}"))),  # noqa: S704 - it has no markup
        "named": lambda text: with_names(KINDS.get(f"{text}", f"{text}")),
    }
    environment.globals |= {
        "stage": site.stage,
        "can_act": any(page.writes for page in pages),
        "menu": [page for page in pages if page.menu],
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
        query, update = dict(request.query_params), "hx-request" in request.headers
        page_request = Request(query, form, update, request.scope.get("viewer"))
        return await run_in_threadpool(_respond, site, environment, page, page_request, home)

    return Route(
        page.path, endpoint, methods=["GET", "POST"] if page.writes or page.finds or page.reads else ["GET"]
    )


def _respond(site: Site, environment: Environment, page: Page, request: Request, home: str) -> Response:
    # Each request has a context of its own.
    _viewer.set(request.viewer)
    try:
        request = _opened(request)
        if page.finds and request.form is not None:
            return RedirectResponse(home + _sealed(page.path, request.form), 303)
        answer: Answer = page.show(site, request)
        if isinstance(answer, Download) and request.viewer:
            from mailroom_ops.console import csv_file  # imported here, because few requests need it

            return RedirectResponse(csv_file.link_to(site, answer, request.viewer), 303)
    except aws_fault_types() as error:
        ours = isinstance(error, Refused)
        unsure = request.form is not None and request["step"] != "preview" and not ours
        answer = _refusal(sentences_of(error, site.stage), 400 if ours else 502, unsure=unsure)
    _log_view(request, page, answer)
    match answer:
        case Goto(url):
            return RedirectResponse(home + url, 303)
        case Frame(html):
            return HTMLResponse(_inert(html), headers={"content-security-policy": _INERT})
        case Download(name, lines):
            headers = {"content-disposition": disposition(name)}
            text = itertools.chain([BYTE_ORDER_MARK], lines)
            return StreamingResponse(text, headers=headers, media_type="text/csv")
    return _rendered(site, environment, page, request, answer)


def _opened(request: Request) -> Request:
    """Return a request without seals. Raises Refused for a seal of another session."""
    viewer = request.viewer
    if viewer is None:
        return request
    query = {name: viewer.opened(text) for name, text in request.query.items()}
    form = request.form and {name: viewer.opened(text) for name, text in request.form.items()}
    return structs.replace(request, query=query, form=form)


def _log_view(request: Request, page: Page, answer: Answer) -> None:
    """Write a log line for each response that has the content of a message, if a person has signed in."""
    if request.viewer and (isinstance(answer, Frame) or (isinstance(answer, Shown) and answer.content)):
        logger.info(
            "content viewed",
            who=request.viewer.who,
            page=page.path,
            id=request["id"],
            event_type=request["channel"],
        )


def _sealed(path: str, query: Mapping[str, str | None]) -> str:
    return link(path, **{name: _seal(text) for name, text in query.items() if text})


def _seal(text: str) -> str:
    viewer = _viewer.get()
    return text if viewer is None else viewer.sealed(text)


def _mask(text: str) -> str:
    viewer = _viewer.get()
    return text if viewer is None else viewer.shown(text)


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
    if isinstance(value, Markup | int | float):
        return value
    return _NO_MARKS.sub(lambda match: printable(match[0]), _mask(f"{value}"))
