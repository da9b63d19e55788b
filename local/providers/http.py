"""What a provider simulator is: something that answers requests under its paths."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class Request:
    """An HTTP request, read whole. Header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Reply:
    """An HTTP answer, written whole."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


def is_meant(headers: Mapping[str, str], own: str) -> bool:
    """Whether a request is meant for the server at `own`, an address and a port, and not made by a web page
    of somebody else.

    Any page may post to any port of this machine, and its name may mean this machine once it was loaded. What
    tells is the headers that a browser sets itself; programs send `Host` alone.
    """
    if headers.get("host") != own:
        return False
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    if site is None:
        return origin in (None, f"http://{own}")
    # A page of our own that tells nobody where it was sends `null`, as that for opting out does.
    return site in ("same-origin", "none") and origin in (None, f"http://{own}", "null")


class NoAnswer(Exception):
    """The provider did its work, and the connection breaks before the client learns of it."""


class Provider(Protocol):
    """A simulated provider; a further one is a further class and an entry in `providers.py`."""

    prefix: str

    def handle(self, request: Request) -> Reply:
        """Answer a request whose path starts with `prefix`; raises NoAnswer to break the connection."""
