"""Answers: JSON for what was done, `application/problem+json` (RFC 9457) for what was not."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from http import HTTPStatus
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from mailroom.ledger.reader import MessageStatus
from mailroom.message.message import encode

Response = dict[str, Any]
"""What an HTTP API takes from its function (payload format 2.0)."""
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
"""When to try again after an outage of ours."""
MAX_FIELD = 200
MAX_PROBLEM = 600
"""Characters: a caller may choose what a sentence quotes."""


class ApiError(Exception):
    """A refusal of a request, with `status` and a problem. `errors` are pairs of a field and its fault."""

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
        self.errors = [entry_of(*each) for each in errors]
        self.retry_after = RETRY_SECONDS if status is HTTPStatus.SERVICE_UNAVAILABLE else 0
        """Seconds after which the same may be sent again; 0: nobody knows."""
        self.members = members

    @classmethod
    def of_field(cls, field: str, problem: str) -> "ApiError":
        """Return the refusal of one field, with status 422."""
        return cls(HTTPStatus.UNPROCESSABLE_ENTITY, f"{field}: {problem}", [(field, problem)])


UNUSED = "attributes of a single message that neither its channel nor its template uses"


class EntryAnswer(Struct, frozen=True):
    """What became of one message of a list."""

    result: Annotated[
        Result,
        Meta(
            description="existed: the very same was accepted before. conflict: its id is used for another "
            "message, which stays. failed: a fault of ours; send it again."
        ),
    ]
    id: Annotated[str | UnsetType, Meta(description="missing where the entry has no usable one")] = UNSET
    event_type: str | UnsetType = UNSET
    field: Annotated[str | UnsetType, Meta(description="the attribute at fault")] = UNSET
    problem: str | UnsetType = UNSET
    href: Annotated[str | UnsetType, Meta(description="where its status is")] = UNSET
    unused: Annotated[list[str] | UnsetType, Meta(description=UNUSED)] = UNSET
    send_at: Annotated[str | UnsetType, Meta(description="in UTC, if it was given without an offset")] = UNSET


def response(status: HTTPStatus, kind: str, body: str, **headers: str) -> Response:
    """A response with this body, which is of the type `kind`."""
    said = {"Content-Type": kind, **headers}
    return {"statusCode": status.value, "headers": said, "body": body, "isBase64Encoded": False}


def of_one(taken: EntryAnswer) -> Response:
    """The answer to a single message. Raises ApiError where it was not taken."""
    status = _STATUS[taken.result]
    if taken.problem:
        field = taken.field or "item"
        raise ApiError(status, f"{field}: {taken.problem}", [(field, taken.problem)])
    return response(status, JSON, msgspec.json.encode(taken).decode(), Location=taken.href or "")


def of_list(taken: Sequence[EntryAnswer]) -> Response:
    """The answer to a list. Raises ApiError where one failed, or where no message is in the mailbox."""
    results = [each.result for each in taken]
    answer = {
        "accepted": results.count("accepted"),
        "existed": results.count("existed"),
        "refused": results.count("refused") + results.count("conflict"),
        "failed": results.count("failed"),
        "messages": [msgspec.to_builtins(each) for each in taken],
    }
    if "failed" in results:
        detail = f"{answer['failed']} of {len(taken)} messages failed; send the same list again"
        raise ApiError(HTTPStatus.SERVICE_UNAVAILABLE, detail, _errors(taken), **answer)
    if answer["refused"] == len(taken):
        alike = HTTPStatus.UNPROCESSABLE_ENTITY if "refused" in results else HTTPStatus.CONFLICT
        detail = f"none of {len(taken)} messages was accepted; each says why"
        raise ApiError(alike, detail, _errors(taken), **answer)
    status = HTTPStatus.ACCEPTED if answer["accepted"] else HTTPStatus.OK
    return response(status, JSON, msgspec.json.encode(answer).decode())


def _errors(taken: Sequence[EntryAnswer]) -> list[tuple[str, str]]:
    return [
        (f"messages[{at}].{each.field}" if each.field != "item" else f"messages[{at}]", each.problem)
        for at, each in enumerate(taken)
        if each.problem
    ]


def of_status(status: MessageStatus) -> Response:
    """The answer that says where a message is; without what is not known yet."""
    said: Mapping[str, Any] = asdict(status)
    always = {"id", "event_type", "status", "attempts"}
    body = {name: value for name, value in said.items() if name in always or value not in (None, [], {})}
    return response(HTTPStatus.OK, JSON, encode(body))


def entry_of(field: str, problem: str) -> dict[str, str]:
    """A field at fault, as answers name it."""
    return {"field": field[:MAX_FIELD], "problem": problem[:MAX_PROBLEM]}


def problem(refusal: ApiError) -> Response:
    """The answer."""
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
