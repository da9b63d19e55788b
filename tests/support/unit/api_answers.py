"""Answers of the API, each compared with the API's description."""

import json
import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from tests.support.api_description import FILE


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def fields(self) -> list[str]:
        """The fields that a problem names."""
        return [each["field"] for each in self.json.get("errors", ())]


@cache
def _document() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(FILE.read_text())
    return read


@cache
def _validator(method: str, path: str, status: int, kind: str) -> Draft202012Validator:
    document = _document()
    responses = document["paths"][path][method.lower()]["responses"]
    assert str(status) in responses, f"{method} {path} answered {status}, which is not described"
    assert kind in responses[str(status)]["content"], (
        f"{method} {path} answered {kind}, which is not described"
    )
    schema = responses[str(status)]["content"][kind]["schema"]
    return Draft202012Validator({**schema, "components": document["components"]})


def check_described(method: str, path: str, answer: Answer) -> None:
    """Fails for an answer that the description does not have."""
    template = re.sub(r"^/messages/(?!cancel$).+?(/cancel)?$", r"/messages/{id}\1", path, flags=re.DOTALL)
    if method == "GET" and path == "/messages/cancel":
        template = "/messages/{id}"
    if method.lower() not in _document()["paths"].get(template, {}):
        return
    _validator(method, template, answer.status, answer.headers["content-type"]).validate(answer.json)
