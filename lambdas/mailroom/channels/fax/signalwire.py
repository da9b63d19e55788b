"""Fax by SignalWire's Compatibility API, which has Twilio's shape and so is spoken with Twilio's client."""

import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from mailroom.channels.fax.contract import Delivered, FaxRequest, FaxState, Pending, Undelivered
from mailroom.channels.twilio_api import TwilioApi
from mailroom.http.https import NotSent, Unclear
from mailroom.http.provider import body_of, epoch, object_in, refusal, text_of
from mailroom.message.outcome import Outcome, Retry, Sent
from mailroom.telemetry import logger, redact

_PENDING = {"queued", "processing", "sending"}
_TRY_AGAIN = {"busy", "no-answer", "failed", "canceled"}
"""SignalWire cancels only a queued fax, so nothing of a canceled one was sent. What it calls a fax whose Ttl
is over, it does not document."""

_SLACK_SECONDS = 86_400
"""The list is asked for a day more than is needed: where the provider takes only the date of a date-time,
and excludes it, today's faxes would be missing, and one that is missing is sent twice."""


class SignalWire:
    """Neither idempotency nor a reference of ours: what a lost answer left behind is found by the numbers."""

    def __init__(
        self, project: str, token: str, *, base_url: str, ttl_minutes: int, quality: str, seconds: float
    ) -> None:
        """`base_url` is the space's (https://example.signalwire.com), `ttl_minutes` how long a fax may wait
        at the provider, `seconds` the longest that one request may take."""
        self.account = project
        self._api = TwilioApi(
            (project, token),
            project,
            base_url=base_url,
            seconds=seconds,
            reason=lambda status, text: reason_of(status, text)[0],
        )
        self._faxes = f"/api/laml/2010-04-01/Accounts/{quote(project, safe='')}/Faxes"
        # Faxes hold personal data: the provider is asked to keep none.
        self._constant = {"Quality": quality, "Ttl": str(ttl_minutes), "StoreMedia": "false"}

    def submit(self, request: FaxRequest) -> Outcome:
        """Ask for the fax. Raises where nobody knows: a 5xx, no answer, or one that cannot be read."""
        numbers = {"To": request.to, "From": request.sender, "MediaUrl": request.media_url}
        try:
            answer = self._api.post(self._faxes, {**numbers, **self._constant})
        except NotSent as error:
            return Retry(f"SignalWire {error}")
        if answer.status_code in {200, 201}:
            return Sent(text_of(body_of(answer.status_code, answer.text), "sid"))
        reason, own = reason_of(answer.status_code, answer.text)
        return refusal(answer.status_code, answer.headers or {}, reason, own=own)

    def fetch(self, provider_id: str) -> FaxState:
        """How it stands. An unknown status ends nothing."""
        fax = self._api.get(self._of(provider_id))
        status = text_of(fax, "status")
        if status == "delivered":
            return Delivered()
        if status in _TRY_AGAIN:
            words = [str(fax[name]) for name in ("error_code", "error_message") if fax.get(name)]
            return Undelivered(status, again=True, detail=redact(": ".join(words)))
        if status not in _PENDING:
            logger.warning("unknown fax status", status=redact(status), provider_id=provider_id)
        return Pending(status)

    def find(self, to: str, reference: str, since: float) -> list[str]:  # noqa: ARG002 - SignalWire keeps none
        """What was sent to that number since then, by our own reading of the dates, which SignalWire writes
        in whole seconds."""
        oldest = math.floor(since)
        found = [fax for fax in self._listed(to, oldest) if _may_be(fax, to, oldest)]
        found.reverse()  # the list is newest first, and sorting keeps that order within a second
        return [text_of(fax, "sid") for fax in sorted(found, key=_created)]

    def cancel(self, provider_id: str) -> None:
        """Ask for it to be stopped, which SignalWire does only to a queued one."""
        answer = self._api.post(self._of(provider_id), {"Status": "canceled"})
        if answer.status_code not in {200, 201, 204}:
            raise Unclear(reason_of(answer.status_code, answer.text)[0])

    def _of(self, provider_id: str) -> str:
        return f"{self._faxes}/{quote(provider_id, safe='')}"

    def _listed(self, to: str, oldest: int) -> Iterator[dict[str, Any]]:
        after = datetime.fromtimestamp(oldest - _SLACK_SECONDS, UTC)
        filters = {"To": to, "DateCreatedAfter": after.strftime("%Y-%m-%dT%H:%M:%SZ")}
        for faxes in self._api.pages(self._faxes, filters, "faxes"):
            yield from faxes


def _created(fax: dict[str, Any]) -> float:
    return epoch(text_of(fax, "date_created"))


def _may_be(fax: dict[str, Any], to: str, oldest: int) -> bool:
    # What the answer leaves out cannot rule a fax out.
    return fax.get("direction") != "inbound" and fax.get("to", to) == to and _created(fax) >= oldest


_OWN_CODES = {
    "21211",  # To is not valid
    "21217",  # To is no phone number
    "21604",  # no To
    "21620",  # MediaUrl is not valid
    "63019",  # the media cannot be downloaded
}
"""Source: "Error codes" of SignalWire's Compatibility API (2026-11-26); 21211 is Twilio's alone."""
_ARGUMENT_INVALID = "10000"
_OWN_ARGUMENT = re.compile(r"(?:The )?'?(?:To|MediaUrl)\b")
"""The beginning of a message that names an argument of the fax. All others come from our settings."""


def reason_of(status: int, text: str) -> tuple[str, bool]:
    """A sentence for the ledger and the log, and whether the fault is the fax's own.

    The Compatibility API's errors have `code` and `message`; the space's own come as a list, with `detail`.
    """
    body = object_in(status, text)
    errors = body.get("errors")
    first = errors[0] if isinstance(errors, list) and errors else body
    error = first if isinstance(first, dict) else {}
    code = str(error.get("code") or "")
    words = str(error.get("message") or error.get("detail") or "no reason given")
    own = code in _OWN_CODES or (code == _ARGUMENT_INVALID and _OWN_ARGUMENT.match(words) is not None)
    return f"SignalWire answered {status}{f' ({code})' if code else ''}: {redact(words)}", own
