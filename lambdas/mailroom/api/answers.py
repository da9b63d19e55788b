"""Answers, from what the library says to what goes over the wire."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from http import HTTPStatus
from typing import Any

import msgspec
from aws_lambda_powertools.event_handler import Response

from mailroom.api.intake import Taken
from mailroom.api.problems import Refusal
from mailroom.ledger.reader import MessageStatus
from mailroom.message.message import encode

JSON = "application/json"
_STATUS = {
    "accepted": HTTPStatus.ACCEPTED,
    "existed": HTTPStatus.OK,
    "refused": HTTPStatus.UNPROCESSABLE_ENTITY,
    "conflict": HTTPStatus.CONFLICT,
    "failed": HTTPStatus.SERVICE_UNAVAILABLE,
}


def of_one(taken: Taken) -> Response[str]:
    """The answer to a single message. Raises Refusal where it was not taken."""
    status = _STATUS[taken.result]
    if taken.problem is not None:
        field = taken.field or "item"
        raise Refusal(status, f"{field}: {taken.problem}", [(field, taken.problem)])
    href = taken.href or ""
    return Response(status.value, JSON, msgspec.json.encode(taken).decode(), {"Location": href})


def of_list(taken: Sequence[Taken]) -> Response[str]:
    """The answer to a list. Raises Refusal where one failed, or where none is in the mailbox."""
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
        raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, detail, _errors(taken), **answer)
    if answer["refused"] == len(taken):
        alike = HTTPStatus.UNPROCESSABLE_ENTITY if "refused" in results else HTTPStatus.CONFLICT
        detail = f"none of {len(taken)} messages was accepted; each says why"
        raise Refusal(alike, detail, _errors(taken), **answer)
    status = HTTPStatus.ACCEPTED if answer["accepted"] else HTTPStatus.OK
    return Response(status.value, JSON, msgspec.json.encode(answer).decode())


def _errors(taken: Sequence[Taken]) -> list[tuple[str, str]]:
    return [
        (f"messages[{at}].{each.field}" if each.field != "item" else f"messages[{at}]", each.problem)
        for at, each in enumerate(taken)
        if each.problem is not None
    ]


def of_status(status: MessageStatus) -> Response[str]:
    """The answer that says where a message is; without what is not known yet."""
    said: Mapping[str, Any] = asdict(status)
    always = {"id", "event_type", "status", "attempts"}
    body = {name: value for name, value in said.items() if name in always or value not in (None, [], {})}
    return Response(HTTPStatus.OK.value, JSON, encode(body))
