"""Fax by SignalWire's Compatibility API. The API is called with Twilio's client, because requests to the API
have the same format as requests to Twilio."""

import math
import re
from collections.abc import Container, Iterable
from datetime import UTC, datetime
from itertools import chain
from urllib.parse import quote

from mailroom.channels.fax.adapter import SECRET
from mailroom.channels.fax.contract import Delivered, FaxRequest, FaxState, Pending, Undelivered
from mailroom.delivery.adapter import credentials
from mailroom.environment import FaxSender
from mailroom.errors import OutcomeUnknown
from mailroom.http.provider_api import body_of, epoch, object_in, refusal, text_of
from mailroom.message.outcome import Evidence, Outcome, Sent, table
from mailroom.providers.look_up import Entry, is_other_number, search, single
from mailroom.providers.twilio_format import TwilioApi
from mailroom.telemetry import logger, redact

_PENDING = {"queued", "processing", "sending"}
_TRY_AGAIN = {"busy", "no-answer", "failed", "canceled"}
"""Final statuses after which another attempt may succeed. SignalWire cancels only queued faxes, so a canceled
fax was not sent. SignalWire does not document the status of a fax whose `Ttl` has passed."""

_SLACK_SECONDS = 86_400
"""Seconds by which a look-up's list of faxes begins earlier than necessary. SignalWire might compare only the
date of `DateCreatedAfter` and exclude that day. Faxes of today would then be missing from the list, and a fax
that is missing is sent again."""


class SignalWire:
    """Client of SignalWire's fax API. The API has neither idempotency keys nor a field for Mailroom's
    reference, so a fax whose response was lost is looked up by the recipient's number."""

    def __init__(self, project: str, token: str, settings: FaxSender) -> None:
        """Create the client of a SignalWire project."""
        self.account = project
        self._api = TwilioApi(
            (project, token),
            project,
            base_url=settings.fax_base_url,
            seconds=settings.submit_seconds,
            reason=lambda status, text: reason_of(status, text)[0],
        )
        self._faxes = f"/api/laml/2010-04-01/Accounts/{quote(project, safe='')}/Faxes"
        # Faxes are personal data, so the request forbids SignalWire to store the PDF.
        self._constant = {
            "Quality": settings.fax_quality,
            "Ttl": str(settings.fax_ttl_minutes),
            "StoreMedia": "false",
        }

    @classmethod
    def of(cls, settings: FaxSender) -> "SignalWire":
        project, token = credentials(SECRET, settings.fax_secret_arn, "project", "token")
        return cls(project, token, settings)

    def submit(self, request: FaxRequest) -> Outcome:
        """Submit the fax. Raises if the outcome is unknown: after a 5xx response, an unreadable response, or
        no response."""
        numbers = {"To": request.to, "From": request.sender, "MediaUrl": request.media_url}
        response = self._api.post(self._faxes, {**numbers, **self._constant})
        if response.status_code in {200, 201}:
            return Sent(text_of(body_of(response.status_code, response.text), "sid"))
        reason, own_fault = reason_of(response.status_code, response.text)
        return refusal(response.status_code, response.headers or {}, reason, own=own_fault)

    def fetch(self, provider_id: str) -> FaxState:
        """Return the state of a fax; Pending for a status that Mailroom does not know."""
        fax = self._api.get(self._of(provider_id))
        status = text_of(fax, "status")
        if status == "delivered":
            return Delivered(fax.get("num_pages"), fax.get("from"), fax.get("date_updated"))
        if status in _TRY_AGAIN:
            detail = ": ".join(str(fax[name]) for name in ("error_code", "error_message") if fax.get(name))
            return Undelivered(status, again=True, detail=redact(detail))
        if status not in _PENDING:
            logger.warning("unknown fax status", status=redact(status), provider_id=provider_id)
        return Pending(status)

    def find(self, to: str, reference: str, since: float, other_ids: Container[str]) -> Evidence:  # noqa: ARG002 - SignalWire does not store references
        """Look for a fax to a number, created at `since` (epoch seconds) or later.

        The creation dates are compared in whole seconds, because SignalWire writes them without fractions.
        """
        after = datetime.fromtimestamp(math.floor(since) - _SLACK_SECONDS, UTC)
        filters = {"DateCreatedAfter": after.strftime("%Y-%m-%dT%H:%M:%SZ")}
        return search(
            chain.from_iterable(self._api.pages(self._faxes, {"To": to, **filters}, "faxes")),
            self._api.pages(self._faxes, filters, "faxes"),
            lambda faxes: evidence(to, faxes, since, other_ids),
        )

    def cancel(self, provider_id: str) -> None:
        """Cancel a fax. SignalWire cancels a fax only while it is queued. Raises RequestFailed."""
        response = self._api.post(self._of(provider_id), {"Status": "canceled"})
        if response.status_code not in {200, 201, 204}:
            raise OutcomeUnknown(reason_of(response.status_code, response.text)[0])

    def _of(self, provider_id: str) -> str:
        return f"{self._faxes}/{quote(provider_id, safe='')}"


def evidence(to: str, faxes: Iterable[Entry], since: float, other_ids: Container[str]) -> Evidence:
    """Return the evidence in SignalWire's list of faxes on whether a fax to a number was sent."""
    return single(
        [
            (text_of(fax, "sid"), fax.get("to") == to)
            for fax in faxes
            if fax.get("direction") != "inbound"
            and not is_other_number(fax.get("to"), to)
            and epoch(text_of(fax, "date_created")) >= math.floor(since)
            and text_of(fax, "sid") not in other_ids
        ]
    )


_DATE = "2026-11-29"
REFUSALS = table(
    "https://developer.signalwire.com/rest/compatibility-api/overview/error-codes",
    _DATE,
    ("21217", "destination", "A call or SMS is placed to a destination which is no valid phone number"),
    ("21219", "destination", "'To' phone number not verified"),
    ("21604", "message", "The destination 'To' phone number is required"),
    ("21620", "message", "Invalid media URL(s)"),
    ("63019", "message", "Media Failed to Download"),
    ("4001", "account", "Insufficient balance"),
    ("10001", "account", "Space is not enabled to use requested feature"),
    ("10002", "account", "Trial account does not support this feature"),
    ("21210", "account", "'From' phone number not verified"),
    ("21212", "account", "Phone number is not in the correct format."),
) | table(
    # SignalWire has Twilio's codes, and does not list this one.
    "https://www.twilio.com/docs/api/errors/{code}",
    _DATE,
    ("21211", "destination", "Invalid 'To' Phone Number"),
    ("20429", "throttled", "Too Many Requests"),
)
"""Documented refusals, by code."""
_ARGUMENT_INVALID = "10000"
_OWN_ARGUMENT = re.compile(r"(?:The )?'?(?:To|MediaUrl)\b")
"""Pattern of the beginning of an error message about an argument that comes from the fax. All other arguments
come from the stage's settings."""


def reason_of(status: int, text: str) -> tuple[str, bool]:
    """Return a sentence about the error for the ledger and the log, and whether the fax itself is at fault.

    Errors of the Compatibility API have `code` and `message`. Errors of the project's space (its host at
    SignalWire) are a list of objects with `detail`.
    """
    body = object_in(status, text)
    errors = body.get("errors")
    first = errors[0] if isinstance(errors, list) and errors else body
    error = first if isinstance(first, dict) else {}
    code = str(error.get("code") or "")
    message = str(error.get("message") or error.get("detail") or "no reason given")
    row = REFUSALS.get(code)
    own_fault = row is not None and row.fault in ("message", "destination")
    own_fault |= code == _ARGUMENT_INVALID and _OWN_ARGUMENT.match(message) is not None
    return f"SignalWire answered {status}{f' ({code})' if code else ''}: {redact(message)}", own_fault
