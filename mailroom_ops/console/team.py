"""Console behind a team's sign-in: its pages, which only read, and the guard that admits people.

The application is without state: each request may be answered by another process. The cookies have the prefix
`__Host-`: browsers accept them only from this host by https, and send them only to it.
"""

import secrets
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote, unquote, urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, RedirectResponse

from mailroom.errors import RequestFailed
from mailroom.telemetry import logger
from mailroom_ops.console.application import application
from mailroom_ops.console.guard import cookies_of, guarded, is_small, same, stranger
from mailroom_ops.console.open_id import FAULTS, OpenId, Roles, SignIn, person_of
from mailroom_ops.console.pages import (
    campaigns,
    dead_letters,
    deeds,
    failures,
    lanes,
    message,
    messages,
    overview,
    people,
)
from mailroom_ops.console.sessions import SECONDS, Sessions
from mailroom_ops.console.site import Page, Site
from mailroom_ops.shared.refusals import Refused, aws_fault_types, sentences_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

READING = (
    Page("/", "Overview", overview.show, menu=True),
    Page("/lanes", "Lanes", lanes.show, of="Overview"),
    Page("/messages", "Messages", messages.show, menu=True, finds=True),
    Page("/selected", "Selected messages", messages.pasted, reads=True, of="Messages"),
    Page("/message", "Message", message.show, of="Messages"),
    Page("/message/mail", "Mail", message.frame, of="Messages"),
    Page("/message/receipt", "Receipt", message.receipt, of="Messages"),
    Page("/failures", "Failures", failures.show, menu=True),
    Page("/dead-letters", "Dead letters", dead_letters.show, menu=True),
    Page("/campaigns", "Campaigns", campaigns.show, menu=True),
    Page("/people", "People", people.show, menu=True, finds=True),
    Page("/deeds", "Activity", deeds.show, menu=True),
)
"""Table of the pages. A page that acts, or that needs a project's folder, is not in it."""
CALLBACK = "/sign-in/callback"
"""Path to which the provider sends people back: its URL is registered at the provider."""
SESSION, SIGN_IN = "__Host-mailroom", "__Host-mailroom-sign-in"
"""Cookies: of a session, and of a sign-in that has begun."""
_COOKIE = "{}={}; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age={}"
_SIGN_IN_SECONDS = 600
_BUTTON = '<form method="post" action="/sign-in?to={to}"><button>Sign in</button></form>'
_STYLE = "/assets/console.css"
_PAGE = f"""<!doctype html><html lang="en"><meta charset="utf-8"><title>Mailroom</title>
<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="{_STYLE}">
<header><div><p class="brand">Mailroom</p></div></header>
<main><h1>Sign in</h1><p>{{reason}}</p>{{remedy}}</main></html>"""
_LEAVING = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Mailroom</title>
<meta http-equiv="refresh" content="0; url={url}"><p><a href="{url}">Sign in</a></p></html>"""
_PATHS = {page.path for page in READING}


class Team:
    """ASGI middleware around the application. `url` is the console's own, such as
    https://console.example.com."""

    def __init__(self, site: Site, url: str, open_id: OpenId, roles: Roles, sessions: Sessions) -> None:
        self._app = application(site, "", READING)
        parts = urlsplit(url)
        self._scheme, self._host = parts.scheme.encode(), parts.netloc.encode()
        self._stage, self._open_id, self._roles, self._sessions = site.stage, open_id, roles, sessions

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer a request, or pass it on to the application with its viewer."""
        response, scope = await run_in_threadpool(self._admit, scope)
        await response(scope, receive, guarded(send))

    def _admit(self, scope: "Scope") -> "tuple[ASGIApp, Scope]":
        """Return what answers a request, and the scope for it."""
        headers = dict(scope["headers"])
        if reason := stranger(scope["method"], headers, self._scheme, self._host):
            return _page(reason, "<p>Open the console by its own URL.</p>"), scope
        if scope["method"] == "POST" and not is_small(headers):
            return _page("The form is too large, or does not say its length.", "", 413), scope
        try:
            return self._admit_own(scope, headers)
        except FAULTS as fault:
            reason = f"The OpenID provider {fault}." if isinstance(fault, RequestFailed) else f"{fault}"
            logger.warning("sign-in refused", reason=reason)
            response = _page(f"You are not signed in. {reason}", _BUTTON.format(to="/"))
            response.headers["set-cookie"] = _COOKIE.format(SIGN_IN, "", 0)  # a sign-in is used once
            return response, scope
        except aws_fault_types() as error:
            return _page(
                " ".join(sentences_of(error, self._stage)), "<p>Try again in a minute.</p>", 502
            ), scope

    def _admit_own(self, scope: "Scope", headers: dict[bytes, bytes]) -> "tuple[ASGIApp, Scope]":
        match scope["method"], scope["path"]:
            case ("POST", "/sign-in"):
                return self._begin(_query(scope, "to")), scope
            case ("GET", path) if path == CALLBACK:
                return self._finish(scope, headers), scope
            case ("POST", "/sign-out"):
                return self._end(headers), scope
            case ("GET", path) if path == _STYLE:  # the pages before a sign-in need it, too
                return self._app, scope
        # A browser sends one session; further cookies of the name are not looked up.
        ids = cookies_of(headers, SESSION)[:1]
        if viewer := next(filter(None, map(self._sessions.viewer, ids)), None):
            return self._app, {**scope, "viewer": viewer}
        to = f"{scope['path']}?{scope['query_string'].decode('latin-1')}"
        return _page("You are not signed in.", _BUTTON.format(to=quote(to, safe=""))), scope

    def _begin(self, to: str) -> HTMLResponse:
        """Send the browser to the provider, with a secret for the way back. It is a page instead of a
        redirect: the policy of a page with a form would not allow a redirect to another host."""
        sign_in = SignIn(secrets.token_urlsafe(32))
        page = _LEAVING.format(url=escape(self._open_id.url(sign_in)))
        cookie = _COOKIE.format(SIGN_IN, f"{sign_in.secret}.{quote(to, safe='')}", _SIGN_IN_SECONDS)
        return HTMLResponse(page, headers={"set-cookie": cookie})

    def _finish(self, scope: "Scope", headers: dict[bytes, bytes]) -> RedirectResponse:
        """Check what the provider sent, and begin a session. Raises the FAULTS of a sign-in."""
        secret, _, to = next(iter(cookies_of(headers, SIGN_IN)), "").partition(".")
        sign_in = SignIn(secret)
        if not secret or not same(_query(scope, "state"), sign_in.part("state")):
            raise Refused("This sign-in was not begun in this browser in the last ten minutes, or has ended.")
        if not (code := _query(scope, "code")):
            raise Refused(f"The provider refused the sign-in: {_query(scope, 'error') or 'it sent no code'}.")
        person = person_of(self._open_id.claims(sign_in, code), self._roles)
        logger.info("signed in", who=person.who, contents=person.contents)
        # Only pages of the table: nothing in the address can lead to another host.
        to = unquote(to)
        response = RedirectResponse(to if to.partition("?")[0] in _PATHS else "/", 303)
        session = _COOKIE.format(SESSION, self._sessions.begin(person), SECONDS)
        for cookie in (session, _COOKIE.format(SIGN_IN, "", 0)):
            response.headers.append("set-cookie", cookie)
        return response

    def _end(self, headers: dict[bytes, bytes]) -> HTMLResponse:
        for id_ in cookies_of(headers, SESSION):
            self._sessions.end(id_)
        response = _page("You have signed out.", _BUTTON.format(to="/"), 200)
        response.headers["set-cookie"] = _COOKIE.format(SESSION, "", 0)
        return response


def _page(reason: str, remedy: str, status: int = 403) -> HTMLResponse:
    return HTMLResponse(_PAGE.format(reason=escape(reason), remedy=remedy), status)


def _query(scope: "Scope", name: str) -> str:
    query: bytes = scope["query_string"]
    return parse_qs(query.decode("latin-1")).get(name, [""])[0]
