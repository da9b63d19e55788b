"""Requests, answers and shared state of the console's pages, independent of the web framework."""

import re
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import quote, urlencode

from msgspec import Struct

from mailroom.clock import Clock
from mailroom_ops.console.viewer import Viewer
from mailroom_ops.shared.deeds import Deed, Deeds

if TYPE_CHECKING:
    import boto3

    from mailroom_ops.console.job import Job

T = TypeVar("T")
J = TypeVar("J", bound="Job")
NEWEST_DEEDS = 50
"""Maximum number of deeds on a page."""
KEPT_SECONDS = 60.0
"""Seconds for which clients and a stage's settings are cached, and so the delay before a deployment is
noticed."""


def link(path: str, /, **query: str | None) -> str:
    """Return a URL of the console, with its query encoded. The URL is relative to the console's home, which
    templates add."""
    fields = {name: value for name, value in query.items() if value}
    return f"{path}?{urlencode(fields)}" if fields else path


class Request(Struct, frozen=True):
    """Request to a page: the query of its URL, and the form of a POST, or None for a GET. With `update`, the
    page asks for its live part only."""

    query: Mapping[str, str] = {}
    form: Mapping[str, str] | None = None
    update: bool = False
    viewer: Viewer | None = None
    """Person who has signed in; None on the console of one machine, whose user may see everything."""

    def __getitem__(self, name: str) -> str:
        """Return a field of the form or the URL unchanged; empty if it is missing. Ids may have spaces at
        their ends."""
        return ({**self.query, **(self.form or {})}).get(name, "")

    @property
    def contents(self) -> bool:
        """Whether the person may see addresses and contents."""
        return self.viewer is None or self.viewer.contents

    def shown(self, text: str) -> str:
        """Return a text as the person may see it."""
        return text if self.viewer is None else self.viewer.shown(text)

    def typed(self, name: str) -> str:
        """Return a field that a person typed or pasted, without the spaces around it."""
        return self[name].strip()

    def but(self, **changes: str) -> dict[str, str]:
        """Return the URL's query with changed values."""
        return {**self.query, **changes}


class View(Struct, frozen=True):
    """Values for one template. A subclass is named like its template: `PeopleErase` is for
    `people_erase.html`."""

    @classmethod
    def file_name(cls) -> str:
        """Return the file name of the template."""
        return re.sub("(?!^)(?=[A-Z])", "_", cls.__name__).lower() + ".html"


class Shown(Struct, frozen=True):
    """Page to show: the values of its template, and a title, by default the title of the page."""

    view: View
    title: str = ""
    status: int = 200
    content: bool = False
    """Whether the page has the content of a message."""


class Goto(Struct, frozen=True):
    """Redirect after a form, to the page that shows the result."""

    url: str


class Frame(Struct, frozen=True):
    """HTML of a message, which the console does not trust, so a sandboxed iframe shows it."""

    html: str


class Download(Struct, frozen=True):
    """Text file, which is produced while it is sent."""

    name: str
    lines: Iterator[str]


BYTE_ORDER_MARK = "\ufeff"
"""First character of a text file, by which spreadsheets read it as UTF-8."""


def disposition(name: str) -> str:
    """Return the header Content-Disposition of a file that browsers save under a name."""
    return f"attachment; filename*=UTF-8''{quote(name)}"


Answer = Shown | Goto | Frame | Download


class Page(Struct, frozen=True):
    """Row of the table of pages."""

    path: str
    title: str
    show: Callable[["Site", Request], Answer]
    """Handler of the page's requests."""
    menu: bool = False
    """Whether the page is in the menu."""
    writes: bool = False
    """Whether the page accepts forms, by POST."""
    finds: bool = False
    """Whether the page accepts a form, by POST, that leads to the page itself: an address does not get into a
    URL that is typed."""
    reads: bool = False
    """Whether the page accepts a form, by POST, that is too long for a URL. The page only reads."""
    local: bool = False
    """Whether only the local stage has the page."""
    of: str = ""
    """Title of the menu entry to which the page belongs, if its path does not show it."""

    @property
    def start(self) -> str:
        """Path of the page that leads to this one."""
        return "/" + self.path.split("/")[1]


class _Session:
    """Session that creates clients under a lock. Threads may share clients, but not a session."""

    way = "console"
    """Way of the deeds that are done with this session: see `Deed.way`."""

    def __init__(self, session: "boto3.Session") -> None:
        self._session, self._lock = session, threading.Lock()

    def client(self, service: Any, *arguments: Any, **options: Any) -> Any:
        with self._lock:
            return self._session.client(service, *arguments, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


class Site:
    """State of the console for one stage (AWS session, jobs, cached values), shared by all request
    threads."""

    def __init__(
        self,
        session: "boto3.Session",
        stage: str,
        clock: Clock = time.time,
        limits: Callable[[], Mapping[str, float]] = dict,
    ) -> None:
        """`limits` returns the messages a second that the settings allow, by channel, without the channels
        that are unlimited or whose settings cannot be read."""
        self.limits = limits
        self.session = cast("boto3.Session", _Session(session))
        self.stage, self.clock = stage, clock
        self.jobs: dict[tuple[type[Job], str], Job] = {}
        """Jobs by their kind and by the name that their page gives them."""
        self.documents: dict[str, str] = {}
        """HTML of the newest previews of mails, by token, for the frames that show them."""
        self._locks: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)
        self._kept: dict[str, tuple[float, Any]] = {}

    def kept(self, name: str, make: Callable[[], T], seconds: float = KEPT_SECONDS) -> T:
        """Return the cached value of a name, or call `make` and cache its result for `seconds`. Only one
        thread at a time makes the value of a name, so a slow service delays only the pages that need its
        value."""
        with self._locks[name]:
            until, value = self._kept.get(name, (0.0, None))
            if until <= self.clock():
                value = make()
                self._kept[name] = (self.clock() + seconds, value)
            return cast(T, value)

    def job(self, kind: type[J], name: str) -> J | None:
        """Return the latest job of a kind and a name, or None if there was none."""
        return cast("J | None", self.jobs.get((kind, name)))

    @property
    def deeds(self) -> Deeds:
        """Record of deeds."""
        return self.kept("deeds", lambda: Deeds(self.session, self.stage, self.clock))

    def deeds_on(self, thing: str) -> list[Deed]:
        """Return the newest deeds on a thing."""
        return [*islice(self.deeds.of(thing), NEWEST_DEEDS)]

    def client(self, service: str) -> Any:
        """Return the client of an AWS service."""
        return self.kept(service, lambda: self.session.client(cast(Any, service)))
