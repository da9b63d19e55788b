"""The console in process, and a browser that asks it: no port, no Chromium."""

import asyncio
import html
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import urlencode, urlsplit

import boto3
from jinja2 import BytecodeCache, Environment
from jinja2.bccache import Bucket
from msgspec import structs

from mailroom.clock import Clock
from mailroom_ops.console import application as console_application
from mailroom_ops.console import server
from mailroom_ops.console.application import application
from mailroom_ops.console.guard import Guard
from mailroom_ops.console.site import Answer, Shown, Site

PORT, HOME, TOKEN = 4711, "/a-path-of-its-own", "a-token-that-nobody-guesses"
HOST = f"127.0.0.1:{PORT}"
ORIGIN = f"http://{HOST}"
_URL = re.compile(rf'(<[^>]*\s(?:href|src|action|hx-get|hx-post)=")(?!#|data:|")({HOME}(?=/))?')


class CompiledTemplates(BytecodeCache):
    """Templates of all consoles of the process. Each console compiles its own otherwise, which takes longer
    than most of its tests."""

    def __init__(self) -> None:
        self._codes: dict[str, Any] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self._codes.get(bucket.key)

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._codes[bucket.key] = bucket.code


vars(console_application)["Environment"] = partial(Environment, bytecode_cache=CompiledTemplates())


@dataclass
class Reply:
    """An answer: its status, its headers by their names in lower case, and its body."""

    status: int
    headers: dict[str, str]
    text: str
    set_cookies: list[str] = field(default_factory=list)

    @property
    def words(self) -> str:
        """Return the text that a person reads: without tags, entities and repeated spaces."""
        return html.unescape(" ".join(re.sub(r"<[^>]*>", " ", self.text).split()))

    def words_of_link(self) -> str:
        """The address of the first link."""
        found = re.search('<a href="([^"]+)"', self.text)
        assert found, self.text
        return html.unescape(found[1])

    def hidden(self) -> dict[str, str]:
        """Return the hidden fields of the form."""
        found = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', self.text)
        return {name: html.unescape(value) for name, value in found}


@dataclass
class Browser:
    """Browser of one console. `cookie` is empty before the browser is let in. Paths omit the console's home:
    this browser adds and removes the home, and fails if a page forgets it."""

    session: boto3.Session
    stage: str = "dev"
    cookie: str = ""
    clock: Clock = time.time
    site: Site = field(init=False)

    def __post_init__(self) -> None:
        limits = partial(server.limits_of, self.stage)
        self.site = Site(self.session, self.stage, self.clock, limits)
        self._app = Guard(application(self.site, HOME, server.PAGES), PORT, HOME, TOKEN)

    def enter(self) -> "Browser":
        """Open the first URL."""
        self.cookie = self.get(f"/?token={TOKEN}").headers["set-cookie"].partition(";")[0]
        return self

    def get(self, path: str, headers: Mapping[str, str] | None = None, /, **query: Any) -> Reply:
        """The page of a path."""
        return self.ask("GET", f"{path}?{urlencode(query)}" if query else path, headers or {})

    def post(self, path: str, form: Mapping[str, str], headers: Mapping[str, str] | None = None) -> Reply:
        """Send a form, as a page of the console's own does unless the headers say otherwise."""
        own = {"origin": ORIGIN, "sec-fetch-site": "same-origin"} if headers is None else headers
        return self.ask("POST", path, own, urlencode(form).encode())

    def ask(self, method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> Reply:
        """Any request of a path below the console's home."""
        reply = self.ask_anywhere(method, HOME + path, headers, body)
        if "location" in reply.headers:
            assert reply.headers["location"].startswith(f"{HOME}/")
            reply.headers["location"] = reply.headers["location"].removeprefix(HOME)
        if "sandbox" not in reply.headers["content-security-policy"]:  # otherwise other people wrote it
            astray = [
                each.string[each.start() : each.end() + 40]
                for each in _URL.finditer(reply.text)
                if not each[2]
            ]
            assert not astray
            reply.text = _URL.sub(r"\1", reply.text)
        return reply

    def ask_anywhere(self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"") -> Reply:
        """Any request."""
        given = {"host": HOST, "content-length": str(len(body)), "cookie": self.cookie, **headers}
        parts = urlsplit(url)
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": parts.path,
            "raw_path": parts.path.encode(),
            "root_path": "",
            "query_string": parts.query.encode(),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in given.items() if value],
        }
        return asyncio.run(self._ask(scope, body))

    async def _ask(self, scope: dict[str, Any], body: bytes) -> Reply:
        sent: list[Any] = []
        received = False

        async def receive() -> dict[str, Any]:
            nonlocal received
            if received:
                await asyncio.Event().wait()  # the browser stays
            received = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        await self._app(scope, receive, send)
        headers = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
        content = b"".join(each.get("body", b"") for each in sent[1:])
        cookies = [value.decode() for name, value in sent[0]["headers"] if name.lower() == b"set-cookie"]
        return Reply(sent[0]["status"], headers, content.decode(), cookies)


def values_of(answer: Answer) -> dict[str, Any]:
    """The values of a page's template."""
    assert isinstance(answer, Shown)
    return structs.asdict(answer.view)
