"""Responses: JSON for success, and `application/problem+json` (RFC 9457) for errors."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from http import HTTPStatus
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from mailroom.errors import quantity
from mailroom.ledger.status_reader import MessageStatus
from mailroom.message.message import encode

Response = dict[str, Any]
"""Response of a function to an HTTP API (payload format 2.0)."""
Result = Literal["accepted", "existed", "refused", "conflict", "failed"]
JSON = "application/json"
_STATUS = {
    "accepted": HTTPStatus.ACCEPTED,
    "existed": HTTPStatus.OK,
    "refused": HTTPStatus.UNPROCESSABLE_ENTITY,
    "conflict": HTTPStatus.CONFLICT,
    "failed": HTTPStatus.SERVICE_UNAVAILABLE,
}

PROBLEM_JSON = "application/problem+json"
RETRY_SECONDS = 2
"""Value of Retry-After in seconds, in a response with status 503."""
MAX_FIELD = 200
MAX_PROBLEM = 600
"""Maximum number of characters of a problem in a response. Problems quote texts of the caller, which may be
long."""


class ApiError(Exception):
    """Error response to a request, with its status and detail. `errors` are pairs of a field and its problem,
    and `members` are further members of the response's body."""

    def __init__(
        self,
        status: HTTPStatus,
        detail: str,
        errors: Iterable[tuple[str, str]] = (),
        **members: Any,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.errors = [entry_of(field, problem) for field, problem in errors]
        self.retry_after = RETRY_SECONDS if status is HTTPStatus.SERVICE_UNAVAILABLE else 0
        """Seconds after which the request may be repeated; 0 if this time is unknown."""
        self.members = members

    @classmethod
    def of_field(cls, field: str, problem: str) -> "ApiError":
        """Return the error for one invalid field, with status 422."""
        return cls(HTTPStatus.UNPROCESSABLE_ENTITY, f"{field}: {problem}", [(field, problem)])


UNUSED = "attributes that neither the channel nor the template uses; only for a single message"


class EntryAnswer(Struct, frozen=True):
    """Result of one message of a list."""

    result: Annotated[
        Result,
        Meta(
            description="existed: the identical message was accepted before. conflict: its id is used for "
            "another message, which is unchanged. failed: a server error; send it again."
        ),
    ]
    id: Annotated[str | UnsetType, Meta(description="missing if the entry has no valid id")] = UNSET
    event_type: str | UnsetType = UNSET
    field: Annotated[str | UnsetType, Meta(description="the invalid attribute")] = UNSET
    problem: str | UnsetType = UNSET
    href: Annotated[str | UnsetType, Meta(description="path of its status")] = UNSET
    unused: Annotated[list[str] | UnsetType, Meta(description=UNUSED)] = UNSET
    send_at: Annotated[str | UnsetType, Meta(description="in UTC, if the item's time has no offset")] = UNSET


def response(status: HTTPStatus, kind: str, body: str, **headers: str) -> Response:
    """Return a response with a body of the media type `kind`."""
    headers = {"Content-Type": kind, **headers}
    return {"statusCode": status.value, "headers": headers, "body": body, "isBase64Encoded": False}


def of_one(entry: EntryAnswer) -> Response:
    """Return the response to a single message. Raises ApiError if it was not accepted."""
    status = _STATUS[entry.result]
    if entry.problem:
        field = entry.field or "item"
        raise ApiError(status, f"{field}: {entry.problem}", [(field, entry.problem)])
    return response(status, JSON, msgspec.json.encode(entry).decode(), Location=entry.href or "")


def of_list(entries: Sequence[EntryAnswer]) -> Response:
    """Return the response to a list of messages. Raises ApiError if a message failed, or if no message was
    accepted."""
    results = [entry.result for entry in entries]
    answer = {
        "accepted": results.count("accepted"),
        "existed": results.count("existed"),
        "refused": results.count("refused") + results.count("conflict"),
        "failed": results.count("failed"),
        "messages": [msgspec.to_builtins(entry) for entry in entries],
    }
    if "failed" in results:
        detail = f"{answer['failed']} of {quantity(len(entries), 'message')} failed; send the same list again"
        raise ApiError(HTTPStatus.SERVICE_UNAVAILABLE, detail, _errors(entries), **answer)
    if answer["refused"] == len(entries):
        status = HTTPStatus.UNPROCESSABLE_ENTITY if "refused" in results else HTTPStatus.CONFLICT
        detail = f"none of {quantity(len(entries), 'message')} was accepted; see `errors` for the reasons"
        raise ApiError(status, detail, _errors(entries), **answer)
    status = HTTPStatus.ACCEPTED if answer["accepted"] else HTTPStatus.OK
    return response(status, JSON, msgspec.json.encode(answer).decode())


def _errors(entries: Sequence[EntryAnswer]) -> list[tuple[str, str]]:
    return [
        (f"messages[{number}]" + ("" if entry.field == "item" else f".{entry.field}"), entry.problem)
        for number, entry in enumerate(entries)
        if entry.problem
    ]


def of_status(status: MessageStatus) -> Response:
    """Return the 200 response with the status of a message. Optional attributes without a value are
    omitted, and the campaign, which is not a part of the API."""
    attributes: Mapping[str, Any] = asdict(replace(status, campaign=None))
    required = {"id", "event_type", "status", "attempts"}
    body = {
        name: value for name, value in attributes.items() if name in required or value not in (None, [], {})
    }
    return response(HTTPStatus.OK, JSON, encode(body))


def entry_of(field: str, problem: str) -> dict[str, str]:
    """Return the entry in `errors` for an invalid field, cut to the maximum lengths."""
    return {"field": field[:MAX_FIELD], "problem": problem[:MAX_PROBLEM]}


def problem(refusal: ApiError) -> Response:
    """Return the response for an error, with a problem (RFC 9457) as its body."""
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": refusal.status.phrase,
        "status": refusal.status.value,
        "detail": refusal.detail[: MAX_FIELD + MAX_PROBLEM],
        **({"errors": refusal.errors} if refusal.errors else {}),
        **refusal.members,
    }
    headers = {"Retry-After": str(refusal.retry_after)} if refusal.retry_after else {}
    return response(refusal.status, PROBLEM_JSON, msgspec.json.encode(body).decode(), **headers)
