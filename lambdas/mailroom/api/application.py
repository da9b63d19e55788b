"""The HTTP API: its routes, and what is answered when a route cannot."""

import re
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Annotated, Any
from urllib.parse import unquote

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError
from aws_lambda_powertools.event_handler.openapi.exceptions import RequestValidationError
from aws_lambda_powertools.event_handler.openapi.params import Header, Path, Query
from botocore.exceptions import BotoCoreError, ClientError
from pydantic import BeforeValidator

from mailroom.api import answers, document
from mailroom.api.answers import Refusal, problem
from mailroom.api.document import Described
from mailroom.api.messages import Intake, States
from mailroom.api.requests import KEY, KEY_HEADER, entries_of, routable
from mailroom.aws import clients
from mailroom.channels.contracts import CONTRACTS, ID_BOUNDS, UNDELAYED, contracts_of
from mailroom.clock import Clock
from mailroom.content.payloads import Payloads
from mailroom.dispatch.dispatcher import Validator
from mailroom.environment import MessagesApiSettings
from mailroom.http.url_policy import UrlPolicy
from mailroom.ledger.ledger import Ledger
from mailroom.ledger.reader import LedgerReader
from mailroom.mailbox import MailboxWriter, Oversize
from mailroom.message.message import MAX_ID_BYTES
from mailroom.telemetry import logger

Handles = Callable[[Any], Callable[[Callable[[Any], Response[str]]], Any]]
"""Powertools' own registration, which is not typed."""
_ID = f"the message's id, at most {MAX_ID_BYTES} bytes of UTF-8"
# The bounds are only described here. What checks them answers with a sentence.
_BOUNDS: Any = {"json_schema_extra": ID_BOUNDS}
IdInPath = Annotated[str, BeforeValidator(unquote), Path(description=_ID, **_BOUNDS)]
IdInQuery = Annotated[str, Query(alias="id", description=f"{_ID}; of any characters", **_BOUNDS)]
EventType = Annotated[
    str | None,
    Query(
        description="which of the messages with that id; needed where there are several",
        json_schema_extra={"enum": list(CONTRACTS)},
    ),
]
Key = Annotated[
    str | None,
    Header(
        alias=KEY_HEADER,
        json_schema_extra={"pattern": f"^{KEY}$"},
        description="the id of a message that has none; those of a list get `key#0`, `key#1` …",
    ),
]
_ASSUMED = re.compile(r"arn:([\w-]+):sts::(\d{12}):assumed-role/([^/]+)/.*", re.DOTALL)
"""The ARN of an assumed role: every session of a role is the same caller."""


def routes_of(settings: MessagesApiSettings, intake: Intake, states: States) -> Described:
    """The resolver with all routes."""
    api = Described(settings)
    _route_sending(api, settings, intake)
    _route_states(api, settings, states)
    _route_description(api)
    _answer_errors(api)
    return api


class Application:
    """Answers the requests of an HTTP API (payload format 2.0)."""

    def __init__(self, settings: MessagesApiSettings, clock: Clock = time.time) -> None:
        self._api = routes_of(settings, _intake(settings, clock), _states(settings, clock))

    def answer(self, event: Mapping[str, Any], context: Any) -> dict[str, Any]:
        """The response to one request."""
        return self._api.resolve(routable(event), context)


def _intake(settings: MessagesApiSettings, clock: Clock) -> Intake:
    validator = Validator(
        contracts_of(settings.default_region),
        settings.lanes,
        payloads=Payloads(clients.s3(), settings.payload_bucket),
        callbacks=UrlPolicy(schemes=settings.callback_schemes, ports=settings.callback_ports),
        clock=clock,
        waiting=UNDELAYED & settings.lanes.keys(),
    )
    oversize = Oversize(
        clients.s3(), lambda: settings.payload_bucket, settings.payload_ttl_seconds or None, clock=clock
    )
    writer = MailboxWriter(
        clients.dynamodb(),
        settings.mailbox_table,
        settings.mailbox_ttl_seconds,
        oversize=oversize,
        clock=clock,
    )
    return Intake(validator, writer)


def _states(settings: MessagesApiSettings, clock: Clock) -> States:
    reader = LedgerReader(clients.dynamodb(), settings.ledger_table, settings.mailbox_table, clock)
    return States(reader, Ledger.of(settings), contracts_of(settings.default_region), clock)


def _route_sending(api: Described, settings: MessagesApiSettings, intake: Intake) -> None:
    @api.post(
        "/messages",
        summary="Send one message, or a list",
        description="Each message of a list is taken or refused on its own; the answer says which.",
        operation_id="send",
        responses=document.POSTED,
        security=document.needed(settings, "send"),
        openapi_extensions={"requestBody": document.request_body(tuple(settings.lanes))},
    )
    def post(idempotency_key: Key = None) -> Response[str]:
        asked = entries_of(api.current_event.raw_event, idempotency_key)
        taken = intake.take(asked.entries, _prefix(settings, api.current_event.raw_event))
        return answers.of_list(taken) if asked.listed else answers.of_one(taken[0])


def _prefix(settings: MessagesApiSettings, event: Mapping[str, Any]) -> str | None:
    """How the keys begin of the objects that a request's caller may name; None: it may name none."""
    if not settings.payload_prefixes:
        return ""
    return settings.payload_prefixes.get(_caller(settings.caller_claim, event))


def _caller(claim: str, event: Mapping[str, Any]) -> str:
    """Who calls, as API Gateway has verified it: the token's `claim`, or the IAM principal."""
    verified = event["requestContext"].get("authorizer") or {}
    if claim:
        return str(verified.get("jwt", {}).get("claims", {}).get(claim, ""))
    return _ASSUMED.sub(r"arn:\1:iam::\2:role/\3", verified.get("iam", {}).get("userArn") or "")


def _route_states(api: Described, settings: MessagesApiSettings, states: States) -> None:
    status: Any = {
        "responses": document.LOOKED_UP,
        "summary": "Where a message is",
        "security": document.needed(settings, "read"),
    }
    cancelled: Any = {
        "responses": document.CANCELLED,
        "summary": "Take back a message that waits for its send_at",
        "security": document.needed(settings, "cancel"),
    }

    @api.get("/messages/<id>", operation_id="status", **status)
    def get(id: IdInPath, event_type: EventType = None) -> Response[str]:  # noqa: A002
        return answers.of_status(states.of(id, event_type))

    @api.get("/messages", operation_id="statusByQuery", **status)
    def find(id_: IdInQuery, event_type: EventType = None) -> Response[str]:
        return answers.of_status(states.of(id_, event_type))

    @api.post("/messages/<id>/cancel", operation_id="cancel", **cancelled)
    def cancel(id: IdInPath, event_type: EventType = None) -> Response[str]:  # noqa: A002
        return answers.of_status(states.cancel(id, event_type))

    @api.post("/messages/cancel", operation_id="cancelByQuery", **cancelled)
    def take_back(id_: IdInQuery, event_type: EventType = None) -> Response[str]:
        return answers.of_status(states.cancel(id_, event_type))


def _route_description(api: Described) -> None:
    @api.get("/openapi.json", include_in_schema=False, compress=True)
    def description() -> Response[str]:
        return Response(HTTPStatus.OK.value, answers.JSON, api.get_openapi_json_schema())

    @api.get("/swagger", include_in_schema=False, compress=True)
    def page() -> Response[str]:
        return Response(HTTPStatus.OK.value, "text/html; charset=utf-8", document.page_of(api))


def _answer_errors(api: Described) -> None:
    handles: Handles = api.exception_handler

    @handles(Refusal)
    def refused(refusal: Refusal) -> Response[str]:
        return problem(refusal)

    @handles(RequestValidationError)
    def invalid(error: RequestValidationError) -> Response[str]:
        errors = [(str(each["loc"][-1]), _said(each)) for each in error.errors()]
        detail = "; ".join(f"{field}: {said}" for field, said in errors)
        return problem(Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, detail, errors))

    @api.not_found
    def unknown(_error: NotFoundError) -> Response[str]:
        return problem(Refusal(HTTPStatus.NOT_FOUND, "there is nothing here; see /openapi.json"))

    @handles([ClientError, BotoCoreError])
    def unreachable(_error: ClientError | BotoCoreError) -> Response[str]:
        logger.exception("AWS refused or was out of reach")
        return problem(Refusal(HTTPStatus.SERVICE_UNAVAILABLE, "a part of ours is out of reach; try again"))

    @handles(Exception)
    def broken(_error: Exception) -> Response[str]:
        logger.exception("a request was not answered")
        return problem(Refusal(HTTPStatus.INTERNAL_SERVER_ERROR, "a fault of ours; it was logged"))


def _said(error: dict[str, Any]) -> str:
    """Pydantic's own sentence, after the field."""
    message: str = error["msg"]
    return "is missing; give it" if error["type"] == "missing" else message[:1].lower() + message[1:]
