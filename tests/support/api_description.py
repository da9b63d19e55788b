"""The file docs/reference/openapi.json: the API in OpenAPI 3.1, built from routes, models and contracts.

`make schema` writes the file, the wheel contains it, and tests compare the API's responses with it.
"""

import inspect
import json
from typing import Any, get_args

import msgspec

from mailroom.api.answers import PROBLEM_JSON
from mailroom.api.listing import MAX_RECIPIENT
from mailroom.api.requests import MAX_BODY_BYTES, MAX_MESSAGES
from mailroom.aws.dynamo_batches import MAX_KEYS
from mailroom.channels.contracts import CONTRACTS
from mailroom.message.message import MAX_ID_BYTES
from mailroom.message.outcome import Status
from mailroom.search.finder import BATCHES, PAGE
from mailroom_ops.setup.schema import schema_of
from tests.support import ROOT
from tests.support.api_models import ANSWERS

FILE = ROOT / "docs" / "reference" / "openapi.json"
DESCRIPTION = f"""\
Takes messages and says what became of them. The same request again is always safe: a message is its `id` and
`event_type`, and what was accepted once is not sent twice.

At most {MAX_MESSAGES:,} messages and {MAX_BODY_BYTES // 1024**2} MiB a request. Errors are `{PROBLEM_JSON}`
(RFC 9457), with the fields at fault in `errors`. What API Gateway refuses by itself
(401, 403, 404, 413, 429 and 503) is `{{"message": "…"}}`.

The URL is the output `ApiUrl` of the stack `mailroom-<stage>-api`. Callers sign their requests by IAM, as
described here. A stage whose setting `api.jwt` names an issuer takes the issuer's tokens in
`Authorization: Bearer` instead.

An id in a path is percent-encoded. Ids with `/`, `?`, `%` or `\\`, and `.` and `..`, do not come through so:
name them by `?id=…` instead, as `href` does.
"""
REFERENCES = "#/components/schemas/{name}"
"""Format of a `$ref` to a component."""
ID_BOUNDS: dict[str, Any] = {
    "minLength": 1,
    "maxLength": MAX_ID_BYTES,
    "pattern": r"^[^\u0000-\u001f\u007f-\u009f\u2028\u2029]+$",
}
"""JSON Schema of an id, which excludes control characters. Mailroom limits the bytes of an id; JSON Schema
can only limit the characters."""
_WELCOME = {"subject": "Welcome", "text": "Hello Ada."}
_EXAMPLES = {
    "one": {
        "summary": "One mail",
        "value": {"id": "welcome-17", "event_type": "mail", "to": "ada@example.com", **_WELCOME},
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


_SIGNED = {
    "type": "apiKey",
    "name": "Authorization",
    "in": "header",
    "x-amazon-apigateway-authtype": "awsSigv4",
    "description": "AWS Signature Version 4, service execute-api",
}


def _json(*names: str, description: str) -> dict[str, Any]:
    schemas = [{"$ref": REFERENCES.format(name=name)} for name in names]
    schema = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _problem(description: str) -> dict[str, Any]:
    schema = {"$ref": REFERENCES.format(name="Problem")}
    return {"description": description, "content": {PROBLEM_JSON: {"schema": schema}}}


def _either(description: str) -> dict[str, Any]:
    """Return a response that either API Gateway or the API's function sends."""
    ours = _problem(description)["content"]
    return {"description": description, "content": _json("GatewayAnswer", description="")["content"] | ours}


_COMMON: dict[str, Any] = {
    "403": _either("The caller may not"),
    "429": _either("Too many requests; or the caller's day is used up, and Retry-After says until when"),
    "500": _problem("A fault of ours"),
    "503": _problem("A part of ours cannot be reached: send the same again after Retry-After seconds"),
}
_POSTED: dict[str, Any] = {
    **_COMMON,
    "202": _json("SingleAnswer", "ListAnswer", description="Accepted; of a list, at least one that is new"),
    "200": _json("SingleAnswer", "ListAnswer", description="Nothing new: the very same was accepted before"),
    "400": _problem("The body is not a JSON object"),
    "409": _problem("The id is used for another message; of a list, every one is"),
    "413": _problem("The body is too large"),
    "415": _problem("The body is not application/json"),
    "422": _problem("Something is wrong with the message; of a list, with each; or no day has room"),
}
_LOOKED_UP: dict[str, Any] = {
    **_COMMON,
    "200": _json("StatusAnswer", description="Where the message is"),
    "404": _problem("There is no such message"),
    "409": _problem("Several messages have that id: name one by event_type"),
    "422": _problem("No message can have that id or event_type"),
}
_LISTED: dict[str, Any] = {
    **_COMMON,
    "200": _json("StatusAnswer", "PageAnswer", description="With an id the message; else a page of messages"),
    "404": _problem("There is no such message; or this stage has no search"),
    "409": _LOOKED_UP["409"],
    "422": _problem("No message can have that id or event_type; or a parameter is wrong"),
}
_CANCELLED: dict[str, Any] = {
    **_LOOKED_UP,
    "200": _json("StatusAnswer", description="It is cancelled, now or before"),
    "409": _problem("It is past waiting; or several messages have that id: name one by event_type"),
}


_ELSEWHERE = _either("The stage does not have this route: see api.jwt.scopes")
_PERSON: dict[str, Any] = {
    **_COMMON,
    "404": _ELSEWHERE,
    "200": _json("PersonAnswer", description="What the person has chosen; of whom is unknown, nothing"),
    "422": _problem("The recipient is not an address or a number"),
}
_CHANGED: dict[str, Any] = {
    **_COMMON,
    "404": _ELSEWHERE,
    "200": _json("ChangedAnswer", description="The choices are stored, now or before"),
    "400": _problem("The body is not a JSON object"),
    "409": _problem("An `in` does not name the opt-out that is valid now; all other choices are stored"),
    "413": _problem("The body is too large"),
    "415": _problem("The body is not application/json"),
    "422": _problem("The recipient, a topic or a choice is wrong; nothing is stored"),
}


_ID = f"the message's id, at most {MAX_ID_BYTES} bytes of UTF-8"


def _parameter(name: str, place: str, description: str, **schema: Any) -> dict[str, Any]:
    said = {"name": name, "in": place, "description": description, "required": place == "path"}
    return {**said, "schema": {"type": "string", **schema}}


_ID_IN_PATH = _parameter("id", "path", _ID, **ID_BOUNDS)
_ID_IN_QUERY = _parameter("id", "query", f"{_ID}; of any characters", **ID_BOUNDS)
_WHICH = "which of the messages with that id; needed where there are several"
_EVENT_TYPE = _parameter("event_type", "query", _WHICH, enum=list(CONTRACTS))
_FILTERS = [
    _parameter("recipient", "query", "whom the messages are for, in any spelling", maxLength=MAX_RECIPIENT),
    _parameter("status", "query", "only messages with this status", enum=[*get_args(Status)]),
    _parameter("template", "query", "only messages of this template"),
    _parameter("campaign", "query", "only messages of this campaign, or of its run: name#run"),
    _parameter("cursor", "query", "the page after the one that named it"),
]


_RECIPIENT = {
    **_parameter("recipient", "query", "the person's address or number, in any spelling", maxLength=2048),
    "required": True,
}
_NEW_CHOICES = {
    "topics": {
        "followers": {"state": "out"},
        "offers": {
            "state": "in",
            "at": "2026-11-21T09:00:00.000Z",
            "evidence": "ticked the box on /account at 2026-11-30T10:12:00Z",
        },
    }
}


def description() -> str:
    """Return the description of the API of a stage that has every channel, with the content of the file."""
    _, answers = msgspec.json.schema_components(ANSWERS, ref_template=REFERENCES)
    for answer in answers.values():
        answer["description"] = inspect.cleandoc(answer["description"])
    document = {
        "openapi": "3.1.0",
        "info": {"title": "Mailroom", "version": "1", "description": DESCRIPTION},
        "paths": _paths(),
        "components": {
            "schemas": {**answers, **_item_schemas()},
            "securitySchemes": {"sigv4": _SIGNED},
        },
        "security": [{"sigv4": []}],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _item_schemas() -> dict[str, Any]:
    """Return the schemas of the channels' items, and the schemas that they refer to, as components."""
    components: dict[str, Any] = {}
    for channel, contract in CONTRACTS.items():
        schema = schema_of(channel)
        components |= schema.pop("$defs")
        del schema["$schema"]
        schema["properties"]["id"] |= ID_BOUNDS
        components[contract.__name__] = schema
    moved: dict[str, Any] = json.loads(json.dumps(components).replace("#/$defs/", REFERENCES.format(name="")))
    return moved


def _paths() -> dict[str, Any]:
    status = {"summary": "Where a message is", "responses": _LOOKED_UP}
    cancel = {
        "summary": "Take back a message that waits for its send_at",
        "responses": _CANCELLED,
    }
    post = {
        "operationId": "send",
        "summary": "Send one message, or a list",
        "description": "Each message of a list is taken or refused on its own; the answer says which.",
        "requestBody": _request_body(),
        "responses": _POSTED,
    }
    in_path, in_query = [_ID_IN_PATH, _EVENT_TYPE], [{**_ID_IN_QUERY, "required": True}, _EVENT_TYPE]
    listed = {
        "operationId": "list",
        "summary": "Somebody's messages, or the newest; with an id, where that message is",
        "description": f"The newest first, {PAGE} a page. With a filter, a page examines "
        f"{BATCHES * MAX_KEYS} messages, and may have fewer. A message is listed once a worker has claimed "
        "it, or once it waits for its time.",
        "parameters": [_ID_IN_QUERY, _EVENT_TYPE, *_FILTERS],
        "responses": _LISTED,
    }
    choices = {"schema": {"$ref": REFERENCES.format(name="Choices")}, "example": _NEW_CHOICES}
    change = {
        "operationId": "change",
        "summary": "Opt a person out of topics, or in again",
        "description": "`out` is never refused. `in` names the `at` of the opt-out that it ends, and the "
        "evidence that the person asked for it. What a provider or the person said about a whole channel "
        "stays. The same request again changes nothing.",
        "parameters": [_RECIPIENT],
        "requestBody": {"required": True, "content": {"application/json": choices}},
        "responses": _CHANGED,
    }
    person = {
        "operationId": "person",
        "summary": "What a person has opted out of, and why nothing is sent at all",
        "description": "Only on a stage that names the scope, or whose callers sign by IAM.",
        "parameters": [_RECIPIENT],
        "responses": _PERSON,
    }
    return {
        "/messages": {
            "post": post,
            "get": listed,
        },
        "/people": {"get": person, "patch": change},
        "/messages/{id}": {"get": {"operationId": "status", "parameters": in_path, **status}},
        "/messages/cancel": {"post": {"operationId": "cancelByQuery", "parameters": in_query, **cancel}},
        "/messages/{id}/cancel": {"post": {"operationId": "cancel", "parameters": in_path, **cancel}},
    }


def _request_body() -> dict[str, Any]:
    """Return the description of the request body of POST /messages."""
    messages = [{"$ref": REFERENCES.format(name=each.__name__)} for each in CONTRACTS.values()]
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


if __name__ == "__main__":
    FILE.write_text(description())
