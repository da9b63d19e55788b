"""Fax by Telnyx's Programmable Fax API. Telnyx's SDK is not used, because it retries POST requests, which
could send a fax twice."""

import math
from base64 import b64encode
from collections.abc import Container, Iterable, Iterator
from datetime import UTC, datetime
from itertools import chain
from typing import Any
from urllib.parse import quote

from mailroom.channels.fax.adapter import SECRET
from mailroom.channels.fax.contract import Delivered, FaxRequest, FaxState, Pending, Undelivered
from mailroom.delivery.adapter import credentials
from mailroom.environment import FaxSender
from mailroom.errors import OutcomeUnknown
from mailroom.http.https import Answer
from mailroom.http.provider_api import ProviderApi, body_of, epoch, object_in, refusal, text_of
from mailroom.message.outcome import Evidence, Outcome, Sent, table
from mailroom.providers.look_up import Entry, is_other_number, is_other_text, search, single
from mailroom.telemetry import logger, redact

_PENDING = {"queued", "initiated", "media.processing", "media.processed", "originated", "sending"}
_QUALITIES = {"standard": "normal", "fine": "high", "superfine": "very_high"}

_PAGE_SIZE = 100
_MAX_PAGES = 5
_SLACK_SECONDS = 1


class Telnyx:
    """Client of Telnyx's fax API. The API lacks idempotency keys, but its list of faxes contains
    `client_state`, so a fax whose response was lost is looked up by Mailroom's reference in that field."""

    def __init__(self, api_key: str, settings: FaxSender) -> None:
        """Create the client of the Telnyx fax application whose id is in the settings."""
        # The application's id identifies the account. The API key cannot, because it is rotated and does not
        # contain the account's name.
        self.account = settings.fax_connection_id
        self._api = ProviderApi(settings.submit_seconds, {"Authorization": f"Bearer {api_key}"})
        self._faxes = f"{settings.fax_base_url.rstrip('/')}/v2/faxes"
        self._constant = {
            "connection_id": settings.fax_connection_id,
            "quality": _QUALITIES[settings.fax_quality],
            # Faxes are personal data, so the request forbids Telnyx to store the PDF.
            "store_media": False,
        }

    @classmethod
    def of(cls, settings: FaxSender) -> "Telnyx":
        (api_key,) = credentials(SECRET, settings.fax_secret_arn, "api_key")
        return cls(api_key, settings)

    def submit(self, request: FaxRequest) -> Outcome:
        """Submit the fax. Raises if the outcome is unknown: after a 5xx response, an unreadable response, or
        no response."""
        fax = {
            "to": request.to,
            "from": request.sender,
            "media_url": request.media_url,
            "client_state": _state(request.reference),
        }
        response = self._api.post(self._faxes, json={**fax, **self._constant})
        if response.status in {200, 201, 202}:
            return Sent(text_of(_fax(response), "id"))
        reason, own_fault = reason_of(response.status, response.text)
        return refusal(response.status, response.headers, reason, own=own_fault)

    def fetch(self, provider_id: str) -> FaxState:
        """Return the state of a fax; Pending for a status that Mailroom does not know."""
        fax = _fax(self._ok(self._api.get(self._of(provider_id))))
        status = text_of(fax, "status")
        if status == "delivered":
            # Telnyx's release note of 2021-02-17 adds `page_count`, which its API reference omits.
            return Delivered(fax.get("page_count"), fax.get("from"), fax.get("updated_at"))
        if status == "failed":
            return undelivered(str(fax.get("failure_reason") or "failed"))
        if status not in _PENDING:
            logger.warning("unknown fax status", status=redact(status), provider_id=provider_id)
        return Pending(status)

    def find(self, to: str, reference: str, since: float, other_ids: Container[str]) -> Evidence:
        """Look for a fax with this attempt's reference that was created at `since` or later. `since` is in
        epoch seconds; a fraction is rounded down."""
        after = datetime.fromtimestamp(math.floor(since) - _SLACK_SECONDS, UTC)
        filters = {
            "filter[created_at][gte]": after.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "filter[direction][eq]": "outbound",
            "page[size]": str(_PAGE_SIZE),
        }
        return search(
            chain.from_iterable(self._pages({"filter[to][eq]": to, **filters})),
            self._pages(filters),
            lambda faxes: evidence(to, reference, faxes, since, other_ids),
        )

    def cancel(self, provider_id: str) -> None:
        """Cancel a fax. Telnyx cancels a fax until its last page is sent. Raises RequestFailed."""
        self._ok(self._api.post(f"{self._of(provider_id)}/actions/cancel"))

    def _of(self, provider_id: str) -> str:
        return f"{self._faxes}/{quote(provider_id, safe='')}"

    def _ok(self, response: Answer) -> Answer:
        if not 200 <= response.status < 300:
            raise OutcomeUnknown(reason_of(response.status, response.text)[0])
        return response

    def _pages(self, filters: dict[str, str]) -> Iterator[list[Entry]]:
        for number in range(1, _MAX_PAGES + 1):
            response = self._ok(self._api.get(self._faxes, {**filters, "page[number]": str(number)}))
            body = body_of(response.status, response.text)
            faxes = body.get("data")
            if not isinstance(faxes, list):
                raise OutcomeUnknown("the response has no list `data`")
            yield faxes
            pages = (body.get("meta") or {}).get("total_pages")
            if not faxes or (isinstance(pages, int) and number >= pages):
                return
        raise OutcomeUnknown(f"the list of faxes has more than {_MAX_PAGES} pages")


def _state(reference: str) -> str:
    return b64encode(reference.encode()).decode()


def _fax(response: Answer) -> dict[str, Any]:
    fax = body_of(response.status, response.text).get("data")
    if not isinstance(fax, dict):
        raise OutcomeUnknown(f"the response ({response.status}) has no object `data`")
    return fax


def evidence(
    to: str, reference: str, faxes: Iterable[Entry], since: float, other_ids: Container[str]
) -> Evidence:
    """Return the evidence in Telnyx's list of faxes on whether the fax with a reference was sent."""
    state = _state(reference)
    candidates = [
        (text_of(fax, "id"), fax.get("client_state") == state)
        for fax in faxes
        if epoch(text_of(fax, "created_at")) >= math.floor(since)
        and text_of(fax, "id") not in other_ids
        and not (is_other_number(fax.get("to"), to) and fax.get("client_state") != state)
        and not is_other_text(fax.get("client_state"), state)
    ]
    return single([candidate for candidate in candidates if candidate[1]] or candidates)


_STATUSES = {"user_busy": "busy", "receiver_no_answer": "no-answer", "sender_canceled": "canceled"}
"""Statuses that Mailroom's callbacks report, by Telnyx's failure reasons. Only reasons for which SignalWire
has a status of the same meaning are listed."""
_ERRORS = "https://developers.telnyx.com/development/api-fundamentals/api-errors"
_DATE = "2026-11-29"
REFUSALS = table(
    _ERRORS,
    _DATE,
    # The fax is at fault if the invalid field is one of `_OWN_FIELDS`, and otherwise the settings.
    ("10002", "message", "The phone number is invalid."),
    ("10003", "message", "The URL provided was invalid, malformed, or too long."),
    ("10015", "message", "The request failed because it was not well-formed."),
    ("10016", "message", "The specified phone number parameter must be in +E.164 format."),
    ("10001", "account", "The phone number is inactive."),
    ("10004", "account", "A required parameter was missing."),
    ("10005", "account", "The requested resource or URL could not be found."),
    ("10006", "account", "The resource ID provided was invalid."),
    ("10009", "account", "The required authentication headers were either invalid or not included."),
    ("10010", "account", "You do not have permission to perform the requested action."),
    ("10011", "throttled", "You have exceeded the maximum number of allowed requests."),
)
"""Documented refusals, by code."""
EVENTS = table(
    "https://support.telnyx.com/en/articles/4967498-fax-api-error-list",
    _DATE,
    ("file_size_limit_exceeded", "message", "The .pdf file provided is greater in size than the limits."),
    ("page_count_limit_exceeded", "message", "The .pdf file has more pages than the prescribed limits."),
    ("file_format_invalid", "message", "The customer file format is not PDF or is invalid PDF."),
    ("file_download_failed", "undecided", "The service was unable to download the file."),
    ("receiver_invalid_number_format", "destination", "The number is not in valid +E.164 format."),
    ("receiver_unallocated_number", "destination", "The number is not currently allocated (assigned)."),
    ("receiver_call_dropped", "destination", "The call dropped prematurely.", "again"),
    ("receiver_communication_error", "destination", "General call failure or routing error.", "again"),
    ("receiver_decline", "destination", "The destination declined the call attempt.", "again"),
    ("receiver_no_response", "destination", "A called party does not respond.", "again"),
    ("receiver_recovery_on_timer_expire", "destination", "Remote party sends a 408.", "again"),
    ("fax_initial_communication_timeout", "destination", "The destination sends no fax tones.", "again"),
    ("fax_signaling_error", "destination", "No response after sending a page.", "again"),
    ("service_unavailable", "throttled", "Internal Telnyx error."),
) | table(
    "https://developers.telnyx.com/docs/programmable-fax/receiving-webhooks",
    _DATE,
    ("account_disabled", "account", "account_disabled"),
    ("no_outbound_profile", "account", "no_outbound_profile"),
    ("unverified_origination_number", "account", "unverified_origination_number"),
    (
        "outbound_profile_daily_spend_limit_exceeded",
        "day",
        "outbound_profile_daily_spend_limit_exceeded",
    ),
    ("connection_channel_limit_exceeded", "throttled", "connection_channel_limit_exceeded"),
    ("outbound_profile_channel_limit_exceeded", "throttled", "outbound_profile_channel_limit_exceeded"),
    ("user_channel_limit_exceeded", "throttled", "user_channel_limit_exceeded"),
    ("destination_invalid", "destination", "destination_invalid"),
    ("destination_not_in_countries_whitelist", "destination", "destination_not_in_countries_whitelist"),
    ("destination_not_in_service_plan", "destination", "destination_not_in_service_plan"),
    ("unverified_destination_not_allowed", "destination", "unverified_destination_not_allowed"),
    ("destination_unreachable", "destination", "destination_unreachable", "again"),
    ("invalid_ecm_response_from_receiver", "destination", "invalid_ecm_response_from_receiver", "again"),
    (
        "receiver_incompatible_destination",
        "destination",
        "receiver_incompatible_destination",
        "again",
    ),
    ("receiver_no_answer", "destination", "receiver_no_answer", "again"),
    ("user_busy", "destination", "user_busy", "again"),
)
"""Failure reasons of an accepted fax. For a part of them Telnyx documents only the name."""
_OWN_FIELDS = {"to", "media_url"}
"""Fields of the request that come from the fax. All other fields come from the stage's settings."""


def undelivered(reason: str) -> Undelivered:
    """Return the state of a fax that failed for Telnyx's `reason`. The state's status is the one that
    `_STATUSES` lists for the reason, or the reason itself if `_STATUSES` does not list the reason.

    The fax is attempted again after a reason that the table lacks: sending a page twice costs less than
    losing a fax.
    """
    row = EVENTS.get(reason)
    again = row is None or row.effect == "again" or row.fault not in ("message", "destination")
    detail = redact(reason)
    return Undelivered(_STATUSES.get(reason, detail), again, detail, row.fault if row else None)


def reason_of(status: int, text: str) -> tuple[str, bool]:
    """Return a sentence about the error for the ledger and the log, and whether the fax itself is at
    fault."""
    errors = _errors(status, text)
    sentences = [
        f"{error.get('code', '')}: {error.get('detail') or error.get('title') or ''}".strip()
        for error in errors
    ]
    details = redact("; ".join(sentences) or "no reason given")
    own_fault = bool(errors) and all(_is_own(error) for error in errors)
    return f"Telnyx answered {status}: {details}", own_fault


def _errors(status: int, text: str) -> list[dict[str, Any]]:
    errors = object_in(status, text).get("errors")
    return [error for error in errors if isinstance(error, dict)] if isinstance(errors, list) else []


def _is_own(error: dict[str, Any]) -> bool:
    source = error.get("source")
    pointer = str(source.get("pointer") or source.get("parameter") or "") if isinstance(source, dict) else ""
    row = REFUSALS.get(str(error.get("code")))
    of_own_field = pointer.strip("/").split("/")[-1] in _OWN_FIELDS
    return of_own_field and row is not None and row.fault == "message"
