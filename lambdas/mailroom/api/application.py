"""Routes of the HTTP API, and the responses to errors."""

import re
import time
from collections.abc import Mapping
from functools import cache, partial
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from mailroom.api import answers
from mailroom.api.answers import ApiError, Response, problem
from mailroom.api.callers import Caller, caller_of
from mailroom.api.listing import of_page, page_of
from mailroom.api.messages import Intake, States
from mailroom.api.people import people_of
from mailroom.api.requests import entries_of, route_of
from mailroom.aws import clients
from mailroom.aws.secret import CachedSecret
from mailroom.channels.contracts import UNDELAYED, contracts_of
from mailroom.clock import Clock
from mailroom.content.payloads import Payloads
from mailroom.dispatch.dispatcher import Validator
from mailroom.environment import MessagesApiSettings
from mailroom.errors import Contention
from mailroom.http.url_policy import UrlPolicy
from mailroom.ledger.status_reader import LedgerReader
from mailroom.ledger.table import LedgerTable
from mailroom.mailbox import MailboxWriter, Oversize
from mailroom.search.finder import Finder
from mailroom.search.rows import Rows
from mailroom.telemetry import logger

if TYPE_CHECKING:
    from mailroom.channels.preview import Previews

_ASSUMED = re.compile(r"arn:([\w-]+):sts::(\d{12}):assumed-role/([^/]+)/.*", re.DOTALL)
"""Pattern of the ARN of an assumed role. All sessions of a role are the same caller."""


class Application:
    """Handler of the API's requests, from an API Gateway HTTP API (payload format 2.0)."""

    def __init__(self, settings: MessagesApiSettings, clock: Clock = time.time) -> None:
        self._settings = settings
        self._intake = _intake(settings, clock)
        self._states = _states(settings, clock)
        self._finder = _finder(settings, clock)
        self._people = people_of(settings, clock)
        self._clock = clock

    def answer(self, event: Mapping[str, Any], _context: Any) -> Response:
        """Return the response to a request."""
        try:
            return self._routed(event)
        except ApiError as refusal:
            return problem(refusal)
        except Contention:
            logger.warning("a caller's daily budget was changed by other requests at each try")
            busy = "other requests of the caller changed its daily budget; try again"
            return problem(ApiError(HTTPStatus.SERVICE_UNAVAILABLE, busy))
        except (ClientError, BotoCoreError):
            logger.exception("AWS refused a call or could not be reached")
            unreachable = "the service is temporarily unavailable; try again"
            return problem(ApiError(HTTPStatus.SERVICE_UNAVAILABLE, unreachable))
        except Exception:  # noqa: BLE001 - logged, and the caller gets a 500 response
            logger.exception("a request failed")
            return problem(ApiError(HTTPStatus.INTERNAL_SERVER_ERROR, "internal error; it was logged"))

    def _routed(self, event: Mapping[str, Any]) -> Response:
        route, id_ = route_of(event)
        query = event.get("queryStringParameters") or {}
        caller = caller_of(self._settings, partial(self._caller, event), self._clock)
        match route:
            case "POST /messages":
                return self._taken(event, caller)
            case "GET /messages" if "id" not in query:
                return of_page(page_of(self._finder, query))
            case "GET /messages" | "GET /messages/{id}":
                return answers.of_status(self._states.of(_id(id_, query), query.get("event_type")))
            case "GET /people" if self._people:
                return self._people.look_up(query, self._caller(event))
            case "PATCH /people" if self._people:
                return self._people.change(event, query, self._caller(event))
            case "POST /messages/cancel" | "POST /messages/{id}/cancel":
                return answers.of_status(self._states.cancel(_id(id_, query), query.get("event_type")))
        raise ApiError(HTTPStatus.NOT_FOUND, "unknown path; see `mailroom docs http-api`")

    def _taken(self, event: Mapping[str, Any], caller: Caller) -> Response:
        entries, is_list = entries_of(event)
        results = self._intake.take(entries, self._prefix(event), caller)
        return answers.of_list(results) if is_list else answers.of_one(results[0])

    def _prefix(self, event: Mapping[str, Any]) -> str | None:
        """Return the prefix that the keys of S3 objects must have in a request of this caller, or None for a
        caller that may not use objects. The prefix is empty if the settings contain no prefixes."""
        if not self._settings.payload_prefixes:
            return ""
        return self._settings.payload_prefixes.get(self._caller(event))

    def _caller(self, event: Mapping[str, Any]) -> str:
        """Return the caller that API Gateway has verified: the token's claim, or the IAM principal."""
        verified = event["requestContext"].get("authorizer") or {}
        if claim := self._settings.caller_claim:
            return str(verified.get("jwt", {}).get("claims", {}).get(claim, ""))
        return _ASSUMED.sub(r"arn:\1:iam::\2:role/\3", verified.get("iam", {}).get("userArn") or "")


def _id(in_path: str | None, query: Mapping[str, str]) -> str:
    """Return the id of a message from the path or else from the query. Raises ApiError 422 without an id."""
    id_ = query.get("id") if in_path is None else in_path
    if id_ is None:
        raise ApiError.of_field("id", "is missing; add it")
    return id_


def _intake(settings: MessagesApiSettings, clock: Clock) -> Intake:
    validator = Validator(
        contracts_of(settings.default_region, settings.push_applications),
        settings.lanes,
        payloads=Payloads(clients.s3(), settings.payload_bucket),
        callbacks=UrlPolicy(schemes=settings.callback_schemes, ports=settings.callback_ports),
        clock=clock,
        waiting=UNDELAYED & settings.lanes.keys(),
        strict=settings.unknown == "refuse",
    )
    oversize = Oversize(
        clients.s3(), lambda: settings.payload_bucket, settings.payload_ttl_seconds, clock=clock
    )
    writer = MailboxWriter(
        clients.dynamodb(),
        settings.mailbox_table,
        settings.mailbox_ttl_seconds,
        oversize=oversize,
        clock=clock,
    )
    return Intake(validator, writer, cache(partial(_previews, settings)))


def _previews(settings: MessagesApiSettings) -> "Previews":
    # The import is here because it takes 100 ms, and only requests with messages need it.
    from mailroom.channels.preview import Previews

    return Previews.of(settings, Path(settings.templates))


def _states(settings: MessagesApiSettings, clock: Clock) -> States:
    reader = LedgerReader(clients.dynamodb(), settings.ledger_table, settings.mailbox_table, clock)
    ledger = LedgerTable(clients.dynamodb(), settings.ledger_table, settings.ledger_ttl_seconds, clock)
    return States(reader, ledger, clock)


def _finder(settings: MessagesApiSettings, clock: Clock) -> Finder | None:
    if not settings.search_table:
        return None
    rows = Rows(CachedSecret(clients.secretsmanager(), settings.search_key_name, clock))
    tables = settings.search_table, settings.ledger_table
    return Finder(clients.dynamodb(), *tables, rows, settings.default_region)
