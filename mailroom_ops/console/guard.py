"""Access control: only the browser of the user who started the console, and only from the console's pages.

Every program on this machine can reach the port, and so can every page in the browser. So a request needs a
cookie, which the browser gets for the token in the first URL. Browsers send a cookie to every port of a host,
but only below the cookie's path. So each console has a random path: neither a server on another port nor the
next console on this port gets the cookie. The Host header of a request must be the console's own: through
another name that resolves to this machine, another site could read the pages (DNS rebinding). The request
must also come from the console's own pages, or another site could submit its forms (CSRF).
"""

import hmac
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.responses import HTMLResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

ADDRESS = "127.0.0.1"
MAX_BODY = 4 * 1024 * 1024
"""Maximum body of a form, in bytes: an item has up to 400 KB, and up to six times as much in a form."""
_HEADERS = {
    # A page may replace this policy, as the frame of a mail does.
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; frame-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    # With no-referrer, browsers would send `Origin: null` with the console's own forms.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_SAFE = ("GET", "HEAD")
REFUSED = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Not allowed</title>
<h1>Not allowed</h1><p>{why}</p><p>{remedy}</p></html>"""
_OTHER_ADDRESS = "This is not the console's address."
_NO_SESSION = "This browser has no session with the console."
_PRINTED_URL = "Open the console by the URL that <code>mailroom console</code> printed. It contains a token."
# The page refreshes to the console instead of redirecting: if the visit began on another site, browsers
# follow a redirect without sending a cookie that is SameSite=Strict.
_ADMITTED = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Mailroom</title>
<link rel="icon" href="data:,"><meta http-equiv="refresh" content="0; url={home}/">
<p><a href="{home}/">Open the console</a></p></html>"""


def stranger(method: str, headers: Mapping[bytes, bytes], scheme: bytes, host: bytes) -> str:
    """Return the reason why a request cannot come from a console's own pages at `host`; empty if it can. A
    navigation to a page may come from anywhere, such as from a link in a ticket: the other site can neither
    read the page nor choose what it does."""
    origin, site = headers.get(b"origin"), headers.get(b"sec-fetch-site")
    navigates = (
        headers.get(b"sec-fetch-mode") == b"navigate" and headers.get(b"sec-fetch-dest") == b"document"
    )
    if headers.get(b"host", b"") != host:
        return _OTHER_ADDRESS
    if origin is not None and origin != scheme + b"://" + host:
        return "The request comes from another page."
    if site not in (None, b"same-origin", b"none") and not (method == "GET" and navigates):
        return "The request comes from another site."
    if method not in _SAFE and origin is None and site != b"same-origin":
        return "The request does not say which page it comes from."
    return ""


class Guard:
    """ASGI middleware around the application. `port` is the served port, `home` the path below which all
    pages are, such as `/Zm9v`, and `token` the secret in the first URL."""

    def __init__(self, app: "ASGIApp", port: int, home: str, token: str) -> None:
        self._app = app
        # Browsers omit port 80, the default of http URLs, from the Host header.
        self._host = (ADDRESS if port == 80 else f"{ADDRESS}:{port}").encode()
        self._home, self._token = home, token
        self._cookie = f"mailroom-console-{port}"
        self._session = secrets.token_urlsafe(32)

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer a request, or pass it on to the application."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers: dict[bytes, bytes] = dict(scope["headers"])
        response: ASGIApp
        if reason := self._stranger(scope, headers):
            response = HTMLResponse(REFUSED.format(why=reason, remedy=_PRINTED_URL), 403)
        elif self._admits(scope):
            cookie = f"{self._cookie}={self._session}; Path={self._home}/; HttpOnly; SameSite=Strict"
            response = HTMLResponse(_ADMITTED.format(home=self._home), headers={"set-cookie": cookie})
        elif not self._known(headers):
            response = HTMLResponse(REFUSED.format(why=_NO_SESSION, remedy=_PRINTED_URL), 403)
        elif scope["method"] not in _SAFE and not is_small(headers):
            reason = "The form is too large, or does not say its length."
            remedy = "To send a large message, use <code>mailroom send</code>."
            response = HTMLResponse(REFUSED.format(why=reason, remedy=remedy), 413)
        else:
            response, scope = self._app, {**scope, "root_path": self._home}
        await response(scope, receive, guarded(send))

    def _stranger(self, scope: "Scope", headers: dict[bytes, bytes]) -> str:
        """Return the reason why a request cannot come from the console's own pages; empty if it can."""
        if not self._is_below_home(scope["path"]):
            return _OTHER_ADDRESS
        return stranger(scope["method"], headers, b"http", self._host)

    def _is_below_home(self, path: str) -> bool:
        first = "/" + path.removeprefix("/").partition("/")[0]
        return "/" in path[1:] and same(first, self._home)

    def _admits(self, scope: "Scope") -> bool:
        """Return whether the request is the first visit, with the right token."""
        if scope["method"] != "GET" or scope["path"] != f"{self._home}/":
            return False
        (token,) = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[:1]
        return same(token, self._token)

    def _known(self, headers: dict[bytes, bytes]) -> bool:
        return any(same(value, self._session) for value in cookies_of(headers, self._cookie))


def cookies_of(headers: Mapping[bytes, bytes], cookie: str) -> list[str]:
    """Return the values of all cookies with a name."""
    # SimpleCookie would stop at a malformed cookie, such as one of a server on another port.
    cookies = headers.get(b"cookie", b"").decode("latin-1").split(";")
    pairs = (pair.strip().partition("=") for pair in cookies)
    return [value for name, _, value in pairs if name == cookie]


def same(text: str, secret: str) -> bool:
    """Compare secrets in constant time."""
    return hmac.compare_digest(text.encode(errors="replace"), secret.encode())


def is_small(headers: Mapping[bytes, bytes]) -> bool:
    """Return whether a request says that its body has at most MAX_BODY bytes."""
    length = headers.get(b"content-length", b"")
    # A request with Transfer-Encoding is refused, because a chunked body can be longer than its
    # Content-Length.
    whole = b"transfer-encoding" not in headers and length.isdigit() and len(length) < 10
    return whole and int(length) <= MAX_BODY


def guarded(send: "Send") -> "Send":
    """Return a `send` that adds _HEADERS to each response, except headers that the response sets itself."""

    async def guarded(message: "Message") -> None:
        if message["type"] == "http.response.start":
            names = {name for name, _ in message["headers"]}
            defaults = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
            message["headers"] = [*message["headers"], *(pair for pair in defaults if pair[0] not in names)]
        await send(message)

    return guarded
