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


class NoAnswer(Exception):
    """The provider did its work, and the connection breaks before the client learns of it."""


class Provider(Protocol):
    """A simulated provider; a further one is a further class and an entry in `providers.py`."""

    prefix: str

    def handle(self, request: Request) -> Reply:
        """Answer a request whose path starts with `prefix`; raises NoAnswer to break the connection."""
