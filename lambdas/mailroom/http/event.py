"""Requests to API Gateway HTTP APIs (payload format 2.0): parsed strictly, with a size limit before they are
decoded."""

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec
from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from mailroom.errors import HttpError, InvalidSecret, RequestFailed
from mailroom.telemetry import count, logger


class Http(Struct, frozen=True):
    """Method of the request, from the event's `requestContext.http`."""

    method: str = ""


class Context(Struct, frozen=True, rename="camel"):
    """Data about the request that API Gateway determines, so that headers and body cannot forge them."""

    http: Http = Http()
    domain_name: str | None = None
    """Host under which API Gateway received the request: the API's default host or a custom domain."""


class HttpRequest(Struct, frozen=True, kw_only=True, rename="camel"):
    """Fields of the event that all APIs of Mailroom use. A subclass adds the fields that one API needs."""

    request_context: Context = Context()
    headers: dict[str, str] = {}
    body: str | None = None
    is_base64_encoded: bool = False

    @property
    def method(self) -> str:
        return self.request_context.http.method

    @property
    def media_type(self) -> str:
        """Content type in lower case, without parameters."""
        return self.header("content-type").partition(";")[0].strip().lower()

    def header(self, name: str) -> str:
        """Return a header by its name in lower case, or "" if it is missing."""
        return next((value for key, value in self.headers.items() if key.lower() == name), "")

    def text(self, limit: int) -> str:
        """Return the decoded body. Raises HttpError: 413 if it has over `limit` bytes, 400 if it is not UTF-8
        text."""
        body = self.body or ""
        size = len(body.encode("utf-8", "surrogatepass"))
        if self.is_base64_encoded:
            # The decoded body has at least this size, so a body over the limit is never decoded.
            size = size // 4 * 3 - 2
        if size > limit:
            raise HttpError(413, "the body is too large")
        try:
            return base64.b64decode(body, validate=True).decode() if self.is_base64_encoded else body
        except ValueError:
            raise HttpError(400, "the body is not valid base64 of UTF-8 text") from None


R = TypeVar("R", bound=HttpRequest)


def read(event: Mapping[str, Any], form: type[R]) -> R:
    """Return an event as an object of the class `form`. Raises HttpError with 400 if the event is not a
    request of an HTTP API."""
    try:
        return msgspec.convert(event, form)
    except msgspec.ValidationError as error:
        raise HttpError(400, f"not a request of an HTTP API: {error}") from None


def urlencoded(text: str, max_fields: int) -> list[tuple[str, str]]:
    """Return the fields of a URL-encoded form of at most `max_fields` fields. Raises HttpError with 400 for
    an invalid form."""
    try:
        return parse_qsl(text, keep_blank_values=True, max_num_fields=max_fields, errors="strict")
    except ValueError:
        raise HttpError(400, "the form is invalid") from None


def unique(fields: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return the fields by name. Raises HttpError with 400 for a repeated field.

    Forms for Mailroom never repeat a field, and it would be unclear which of its values was checked.
    """
    by_name = dict(fields)
    if len(by_name) < len(fields):
        raise HttpError(400, "the form contains a field twice")
    return by_name


def answered(handle: Callable[[], Mapping[str, Any]], metric: str) -> dict[str, Any]:
    """Return the response of `handle` to a provider's request, or the status of its error without a body. The
    statuses 500 and 503 are faults of the stage, after which providers retry. Errors are counted in the
    metrics `<metric>Refused` and `<metric>Failed`."""
    try:
        return dict(handle())
    except HttpError as fault:
        logger.warning("request refused", status=fault.status, reason=str(fault))
        count(f"{metric}Refused")
        return {"statusCode": fault.status}
    except InvalidSecret as fault:
        logger.error("the signatures of requests cannot be checked", reason=str(fault))
        status = 500
    except (ClientError, BotoCoreError, RequestFailed) as error:
        logger.error("request not accepted", reason=str(error))
        status = 503
    count(f"{metric}Failed")
    return {"statusCode": status}
