"""Errors as RFC 9457 wants them: `application/problem+json`, with the fields at fault beside the sentence."""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

import msgspec
from aws_lambda_powertools.event_handler import Response

PROBLEM_JSON = "application/problem+json"
RETRY_SECONDS = 2
"""When to try again after an outage of ours."""
MAX_FIELD = 200
MAX_PROBLEM = 600
"""Characters: a caller may choose what a sentence quotes."""


class Refusal(Exception):
    """Answered with `status` and a problem. `errors` are pairs of a field and what is wrong with it."""

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
        self.members = members

    @classmethod
    def of_field(cls, field: str, problem: str) -> "Refusal":
        """422 for one field."""
        return cls(HTTPStatus.UNPROCESSABLE_ENTITY, f"{field}: {problem}", [(field, problem)])


def entry_of(field: str, problem: str) -> dict[str, str]:
    """A field at fault, as answers name it."""
    return {"field": field[:MAX_FIELD], "problem": problem[:MAX_PROBLEM]}


def problem(refusal: Refusal) -> Response[str]:
    """The answer."""
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": refusal.status.phrase,
        "status": refusal.status.value,
        "detail": refusal.detail[: MAX_FIELD + MAX_PROBLEM],
        **({"errors": refusal.errors} if refusal.errors else {}),
        **refusal.members,
    }
    headers = {}
    if refusal.status is HTTPStatus.SERVICE_UNAVAILABLE:
        headers["Retry-After"] = str(RETRY_SECONDS)
    return Response(refusal.status.value, PROBLEM_JSON, msgspec.json.encode(body).decode(), headers)
