"""Checks requests and responses against an OpenAPI 3.0 description, with jsonschema."""

import json
import re
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from jsonschema import Draft202012Validator, FormatChecker  # type: ignore[import-untyped]

from mailroom_local.providers.http import Reply, Request

TYPES = {"integer": int, "number": float, "boolean": lambda text: {"true": True, "false": False}[text]}
FORMATS = FormatChecker([])


def is_rfc_2822(text: object) -> bool:
    """Return whether a date has Twilio's format, with the offset +0000."""
    return not isinstance(text, str) or (text.endswith(" +0000") and parsedate_to_datetime(text) is not None)


FORMATS.checks("date-time-rfc-2822", ValueError)(is_rfc_2822)


class Description:
    """The description of an API.

    Raises AssertionError for requests and responses that it does not describe.
    """

    def __init__(self, path: Path) -> None:
        self._spec = json.loads(path.read_text())
        self._schemas = _nullable(self._spec["components"]["schemas"])

    def request(self, request: Request) -> None:
        """Check that path, query and form are described, and that each parameter has the right type."""
        path, operation = self._operation(request)
        parts = urlsplit(request.path)
        described = {(each["in"], each["name"]): each["schema"] for each in operation["parameters"]}
        for name, value in path.items():
            self._check(value, described["path", name], name)
        for name, values in parse_qs(parts.query, keep_blank_values=True).items():
            assert ("query", name) in described, f"no parameter {name} of the query is described"
            for value in values:
                self._check(_typed(value, described["query", name]), described["query", name], name)
        form = parse_qs(request.body.decode(), keep_blank_values=True)
        if "requestBody" in operation:
            self._form(
                form, operation["requestBody"]["content"]["application/x-www-form-urlencoded"]["schema"]
            )
        else:
            assert not form

    def reply(self, request: Request, reply: Reply) -> None:
        """Check that the status is described, and that the body matches its schema without further
        properties."""
        _, operation = self._operation(request)
        described = operation["responses"].get(str(reply.status))
        assert described, f"no answer with status {reply.status} is described"
        assert reply.headers["Content-Type"] == "application/json"
        schema = described["content"]["application/json"]["schema"]
        self._check(json.loads(reply.body), _closed(_nullable(schema)), "answer")

    def _form(self, form: dict[str, list[str]], schema: dict[str, Any]) -> None:
        for name, values in form.items():
            assert name in schema["properties"], f"no parameter {name} of the form is described"
            expected = schema["properties"][name]
            value = values if expected["type"] == "array" else _typed(values[-1], expected)
            self._check(value, expected, name)
        assert set(schema.get("required", [])) <= set(form)

    def _operation(self, request: Request) -> tuple[dict[str, str], dict[str, Any]]:
        asked = urlsplit(request.path).path
        for template, methods in self._spec["paths"].items():
            pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/.]+)", re.escape(template))
            found = re.fullmatch(pattern, asked)
            if found and request.method.lower() in methods:
                return found.groupdict(), methods[request.method.lower()]
        raise AssertionError(f"{request.method} {asked} is not described")

    def _check(self, value: Any, schema: Any, name: str) -> None:
        whole = {**_nullable(schema), "components": {"schemas": _closed(self._schemas)}}
        errors = list(Draft202012Validator(whole, format_checker=FORMATS).iter_errors(value))
        assert not errors, f"{name}: {errors[0].json_path}: {errors[0].message}"


def _typed(text: str, schema: dict[str, Any]) -> Any:
    return TYPES.get(schema.get("type", ""), str)(text)  # type: ignore[operator]


def _nullable(schema: Any) -> Any:
    """Convert OpenAPI 3.0's `nullable` to JSON Schema."""
    if isinstance(schema, list):
        return [_nullable(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: _nullable(each) for name, each in schema.items() if name != "nullable"}
    return made | {"type": [schema["type"], "null"]} if schema.get("nullable") is True else made


def _closed(schema: Any) -> Any:
    """Return the schema with objects that have exactly the described properties."""
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: _closed(each) for name, each in schema.items()}
    if isinstance(schema.get("properties"), dict) and "type" in schema:
        made |= {"additionalProperties": False, "required": sorted(schema["properties"])}
    return made
