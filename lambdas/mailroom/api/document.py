"""The API's description of itself: OpenAPI 3.1, from the routes, the models and the channels' contracts."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver

from mailroom.api.answers import PROBLEM_JSON
from mailroom.api.requests import MAX_BODY_BYTES, MAX_MESSAGES
from mailroom.channels.contracts import REFERENCES, component_of, components_of
from mailroom.environment import MessagesApiSettings

if TYPE_CHECKING:
    from aws_lambda_powertools.event_handler.openapi.models import OpenAPI

TITLE = "Mailroom"
VERSION = "1"
DESCRIPTION = f"""\
Takes messages and says what became of them. The same request again is always safe: a message is its `id` and
`event_type`, and what was accepted once is not sent twice.

At most {MAX_MESSAGES:,} messages and {MAX_BODY_BYTES // 1024**2} MiB a request. Errors are `{PROBLEM_JSON}`
(RFC 9457), with the fields at fault in `errors`. What API Gateway refuses by itself (401, 403, 404, 413, 429,
503) is `{{"message": "…"}}`.

An id in a path is percent-encoded. Ids with `/`, `?`, `%` or `\\`, and `.` and `..`, do not come through so:
name them by `?id=…` instead, as `href` does.
"""
_EXAMPLES = {
    "one": {
        "summary": "One mail",
        "value": {"id": "welcome-17", "event_type": "mail", "to": "ada@example.com", "template": "welcome"},
    },
    "list": {
        "summary": "A list",
        "value": {
            "messages": [
                {"id": "code-9", "event_type": "sms", "to": "+16175551234", "text": "Your code: 4711"},
                {
                    "id": "order-42",
                    "event_type": "fax",
                    "to": "+16175551234",
                    "pdf_url": "https://files.example/42.pdf",
                },
            ]
        },
    },
}


_TOKEN = "jwt"  # noqa: S105 - the name of a scheme


def _json(*names: str, description: str) -> dict[str, Any]:
    schemas = [{"$ref": REFERENCES.format(name=name)} for name in names]
    schema = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _problem(description: str) -> dict[str, Any]:
    schema = {"$ref": REFERENCES.format(name="Problem")}
    return {"description": description, "content": {PROBLEM_JSON: {"schema": schema}}}


_COMMON: dict[int, Any] = {
    403: _json("GatewayAnswer", description="The caller may not; API Gateway says so"),
    429: _json("GatewayAnswer", description="Too many requests; API Gateway says so"),
    500: _problem("A fault of ours"),
    503: _problem("A part of ours cannot be reached: send the same again after Retry-After seconds"),
}
POSTED: dict[int, Any] = {
    **_COMMON,
    202: _json("SingleAnswer", "ListAnswer", description="Accepted; of a list, at least one that is new"),
    200: _json("SingleAnswer", "ListAnswer", description="Nothing new: the very same was accepted before"),
    400: _problem("The body is no JSON object"),
    409: _problem("The id is used for another message; of a list, every one is"),
    413: _problem("The body is too large"),
    415: _problem("The body is not application/json"),
    422: _problem("Something is wrong with the message; of a list, with each of them"),
}
LOOKED_UP: dict[int, Any] = {
    **_COMMON,
    200: _json("StatusAnswer", description="Where the message is"),
    404: _problem("There is no such message"),
    409: _problem("Several messages have that id: name one by event_type"),
    422: _problem("No message can have that id or event_type"),
}
CANCELLED: dict[int, Any] = {
    **LOOKED_UP,
    200: _json("StatusAnswer", description="It is cancelled, now or before"),
    409: _problem("It is past waiting; or several messages have that id: name one by event_type"),
}


class Described(APIGatewayHttpResolver):
    """A resolver with a description of its own.

    What only the description needs is imported when somebody asks for it: a cold start waits for less.
    """

    def __init__(self, settings: MessagesApiSettings) -> None:
        super().__init__(enable_validation=True, debug=False)
        self._settings = settings

    def get_openapi_schema(self, **kwargs: Any) -> "OpenAPI":
        """As powertools makes it, with all that the routes refer to."""
        from aws_lambda_powertools.event_handler.openapi.models import Schema, Server

        name, scheme = _security(self._settings)
        said = {
            "title": TITLE,
            "version": VERSION,
            "description": DESCRIPTION,
            "servers": [Server(url=self._settings.public_url)],
            "security_schemes": {name: scheme},
            "security": [{name: []}],
        }
        document = super().get_openapi_schema(**{**kwargs, **said})
        assert document.components is not None
        schemas = {**_answers(), **components_of(self._settings.lanes)}
        # Powertools' own name what it would answer; we answer problems.
        document.components.schemas = {each: Schema.model_validate(schemas[each]) for each in sorted(schemas)}
        return document


def _answers() -> dict[str, Any]:
    from pydantic.json_schema import models_json_schema

    from mailroom.api import models

    _, schema = models_json_schema(
        [(model, "serialization") for model in models.ANSWERS],
        ref_template=REFERENCES.replace("{name}", "{model}"),
    )
    answers: dict[str, Any] = schema["$defs"]
    return answers


def _security(settings: MessagesApiSettings) -> tuple[str, Any]:
    from aws_lambda_powertools.event_handler.openapi.models import APIKey, APIKeyIn, OpenIdConnect

    if settings.jwt_issuer:
        url = settings.jwt_issuer.rstrip("/") + "/.well-known/openid-configuration"
        return _TOKEN, OpenIdConnect(openIdConnectUrl=url, description="A token in Authorization: Bearer")
    signed: Any = {
        "name": "Authorization",
        "in": APIKeyIn.header,
        "x-amazon-apigateway-authtype": "awsSigv4",
        "description": "AWS Signature Version 4, service execute-api",
    }
    return "sigv4", APIKey(**signed)


def needed(settings: MessagesApiSettings, operation: str) -> list[dict[str, list[str]]] | None:
    """The scope that an operation needs; None: the same as every other, which is none."""
    if not settings.jwt_scopes:
        return None
    return [{_TOKEN: [settings.jwt_scopes[operation]]}]


def request_body(channels: tuple[str, ...]) -> dict[str, Any]:
    """What POST /messages takes."""
    messages = [{"$ref": REFERENCES.format(name=component_of(each))} for each in channels]
    listed = {
        "type": "object",
        "title": "Messages",
        "properties": {
            "messages": {
                "type": "array",
                "minItems": 1,
                "maxItems": MAX_MESSAGES,
                "items": {"anyOf": messages},
            }
        },
        "required": ["messages"],
        "additionalProperties": False,
    }
    content = {"schema": {"anyOf": [*messages, listed]}, "examples": _EXAMPLES}
    return {"required": True, "content": {"application/json": content}}


def page_of(api: Described) -> str:
    """Swagger's page about an API, whole: it asks no other server for anything.

    Powertools' own `enable_swagger` would import at every cold start what only this page needs.
    """
    from aws_lambda_powertools.event_handler.openapi import swagger_ui

    folder = Path(swagger_ui.__file__).parent
    script, style = (
        (folder / name).read_text("utf-8") for name in ("swagger-ui-bundle.min.js", "swagger-ui.min.css")
    )
    # What the description says may not end the script that it stands in.
    description = api.get_openapi_json_schema().replace("</", "<\\/")
    return swagger_ui.generate_swagger_html(description, script, style, "", None)
