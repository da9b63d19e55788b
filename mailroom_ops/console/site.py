"""What a page of the console is given, and what it answers. Neither knows the web framework."""

import re
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import urlencode

from msgspec import Struct

from mailroom.clock import Clock
from mailroom_ops.console.job import Job

if TYPE_CHECKING:
    import boto3

T = TypeVar("T")
J = TypeVar("J", bound=Job)
KEPT_SECONDS = 60.0
"""For how long clients and a stage's settings are kept. Then a new deployment is seen."""


def link(path: str, /, **query: str | None) -> str:
    """A URL of the console's own, with whatever stands in the names and ids of others. It begins at the
    console's home, which templates put before it."""
    given = {name: value for name, value in query.items() if value}
    return f"{path}?{urlencode(given)}" if given else path


class Asked(Struct, frozen=True):
    """A request: what its URL asks for, and the form that came with it (None: it only reads).
    `update`: the page is there, and asks for its live part."""

    query: Mapping[str, str] = {}
    form: Mapping[str, str] | None = None
    update: bool = False

    def __getitem__(self, name: str) -> str:
        """A field of the form or the URL, as it is; "": there is none. Ids may have spaces at their ends."""
        return ({**self.query, **(self.form or {})}).get(name, "")

    def typed(self, name: str) -> str:
        """A field that a person typed or pasted, without spaces around it."""
        return self[name].strip()

    def but(self, **other: str) -> dict[str, str]:
        """The URL's query with other values."""
        return {**self.query, **other}


class View(Struct, frozen=True):
    """Values that one template shows, and no other. A subclass is named like its template: `PeopleErase` is
    for `people_erase.html`."""

    @classmethod
    def file_name(cls) -> str:
        """Return the file name of the template."""
        return re.sub("(?!^)(?=[A-Z])", "_", cls.__name__).lower() + ".html"


class Shown(Struct, frozen=True):
    """A page: the values of its template, and a title of its own ("": the page's)."""

    view: View
    title: str = ""
    status: int = 200


class Goto(Struct, frozen=True):
    """After a form: the page that shows what became of it."""

    url: str


class Frame(Struct, frozen=True):
    """A document that somebody else wrote, for a frame in which it can do nothing."""

    html: str


class Download(Struct, frozen=True):
    """A file of text, which is read while it is sent."""

    name: str
    lines: Iterator[str]


Answer = Shown | Goto | Frame | Download


class Page(Struct, frozen=True):
    """One row of the table of pages. `show` answers; `menu`: every page links to it. `writes`: it takes
    forms. `local`: only the local stage has it. `of`: the title of the page of the menu that it belongs to,
    where its path does not say so."""

    path: str
    title: str
    show: Callable[["Site", Asked], Answer]
    menu: bool = False
    writes: bool = False
    local: bool = False
    of: str = ""

    @property
    def start(self) -> str:
        """Path of the page that leads to this one."""
        return "/" + self.path.split("/")[1]


class _Session:
    """A session that several threads may ask for clients. Clients are made for threads, sessions are not."""

    def __init__(self, session: "boto3.Session") -> None:
        self._session, self._lock = session, threading.Lock()

    def client(self, service: Any, *more: Any, **options: Any) -> Any:
        with self._lock:
            return self._session.client(service, *more, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


class Site:
    """The stage that is shown. Pages are answered in threads: what is `kept` is shared by them."""

    def __init__(self, session: "boto3.Session", stage: str, clock: Clock = time.time) -> None:
        self.session = cast("boto3.Session", _Session(session))
        self.stage, self.clock = stage, clock
        self.jobs: dict[tuple[type[Job], str], Job] = {}
        """Jobs by their kind and by the name that their page gives them."""
        self.documents: dict[str, str] = {}
        """What somebody is about to send, for a frame, by a token; the newest few."""
        self._locks: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)
        self._kept: dict[str, tuple[float, Any]] = {}

    def kept(self, name: str, make: Callable[[], T], seconds: float = KEPT_SECONDS) -> T:
        """What `make` made under this name in the last so many seconds, or makes now, one thread at a time.
        A service that does not answer holds up only the pages that ask it."""
        with self._locks[name]:
            until, value = self._kept.get(name, (0.0, None))
            if until <= self.clock():
                value = make()
                self._kept[name] = (self.clock() + seconds, value)
            return cast(T, value)

    def job(self, kind: type[J], name: str) -> J | None:
        """Return the job of a kind and a name, until another one replaces it."""
        return cast("J | None", self.jobs.get((kind, name)))

    def client(self, service: str) -> Any:
        """The client of an AWS service."""
        return self.kept(service, lambda: self.session.client(cast(Any, service)))
