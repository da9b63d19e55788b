"""A request of the HTTP API (payload format 2.0): read strictly, and bounded before anybody works on it."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec
from msgspec import Struct


class HttpError(Exception):
    """Answered with `status`; the sentence is for the log and quotes nothing."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Http(Struct, frozen=True):
    """What the request line says."""

    method: str = ""


class Context(Struct, frozen=True, rename="camel"):
    """What API Gateway says of the request. Neither header nor body can change it."""

    http: Http = Http()
    domain_name: str | None = None
    """The host by which API Gateway found this API: its own, or a custom domain of it."""


class HttpRequest(Struct, frozen=True, kw_only=True, rename="camel"):
    """The event, as far as all readers use it; a subclass adds what one of them needs."""

    request_context: Context = Context()
    headers: dict[str, str] = {}
    body: str | None = None
    is_base64_encoded: bool = False

    @property
    def method(self) -> str:
        return self.request_context.http.method

    @property
    def media_type(self) -> str:
        """What the body says it is, in lower case and without parameters."""
        return self.header("content-type").partition(";")[0].strip().lower()

    def header(self, name: str) -> str:
        """A header by its name in lower case; "": there is none."""
        return next((value for each, value in self.headers.items() if each.lower() == name), "")

    def text(self, limit: int) -> str:
        """The body. Raises HttpError: 413 over `limit` bytes, 400 where it is no text."""
        body = self.body or ""
        size = len(body.encode("utf-8", "surrogatepass"))
        if self.is_base64_encoded:  # three bytes in four characters; what is too large is never decoded
            size = size // 4 * 3 - 2
        if size > limit:
            raise HttpError(413, "the body is too large")
        try:
            return base64.b64decode(body, validate=True).decode() if self.is_base64_encoded else body
        except ValueError:
            raise HttpError(400, "the body is not the base64 of UTF-8") from None


R = TypeVar("R", bound=HttpRequest)


def read(event: Mapping[str, Any], form: type[R]) -> R:
    """The request of an event, in its reader's form. Raises HttpError with 400 for any other event."""
    try:
        return msgspec.convert(event, form)
    except msgspec.ValidationError as error:
        raise HttpError(400, f"not a request of an HTTP API: {error}") from None


def urlencoded(text: str, most: int) -> list[tuple[str, str]]:
    """The fields of a form, `most` of them. Raises HttpError with 400 for what cannot be read."""
    try:
        return parse_qsl(text, keep_blank_values=True, max_num_fields=most, errors="strict")
    except ValueError:
        raise HttpError(400, "the form cannot be read") from None


def unique(fields: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The fields by name. Raises HttpError with 400 for a repeated field: no form of ours has one, and either
    value would have to be believed."""
    named = dict(fields)
    if len(named) < len(fields):
        raise HttpError(400, "a field stands in the form twice")
    return named
