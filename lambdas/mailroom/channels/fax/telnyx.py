"""Fax by Telnyx's Programmable Fax API, spoken in plain HTTP: its SDK repeats POSTs on its own."""

import math
from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from mailroom.channels.fax.contract import Delivered, FaxRequest, FaxState, Pending, Undelivered
from mailroom.http.https import Answer, NotSent, Unclear
from mailroom.http.provider import ProviderApi, body_of, epoch, object_in, refusal, text_of
from mailroom.message.outcome import Outcome, Retry, Sent
from mailroom.telemetry import logger, redact

_PENDING = {"queued", "initiated", "media.processing", "media.processed", "originated", "sending"}
_QUALITIES = {"standard": "normal", "fine": "high", "superfine": "very_high"}

_PAGE_SIZE = 100
_MAX_PAGES = 5
_SLACK_SECONDS = 1


class Telnyx:
    """No idempotency, but `client_state`, which a list shows: the reference finds what a lost answer left."""

    def __init__(
        self, api_key: str, *, base_url: str, connection_id: str, quality: str, seconds: float
    ) -> None:
        """`base_url` is https://api.telnyx.com, `connection_id` the fax application's, `quality` standard,
        fine or superfine, `seconds` the longest that one request may take."""
        self.account = connection_id  # the key says nothing of its account, and changes
        self._api = ProviderApi(seconds, {"Authorization": f"Bearer {api_key}"})
        self._faxes = f"{base_url.rstrip('/')}/v2/faxes"
        self._constant = {
            "connection_id": connection_id,
            "quality": _QUALITIES[quality],
            # Faxes hold personal data: the provider is asked to keep none.
            "store_media": False,
        }

    def submit(self, request: FaxRequest) -> Outcome:
        """Ask for the fax. Raises where nobody knows: a 5xx, no answer, or one that cannot be read."""
        fax = {
            "to": request.to,
            "from": request.sender,
            "media_url": request.media_url,
            "client_state": _state(request.reference),
        }
        try:
            answer = self._api.post(self._faxes, json={**fax, **self._constant})
        except NotSent as error:
            return Retry(f"Telnyx {error}")
        if answer.status in {200, 201, 202}:
            return Sent(text_of(_fax(answer), "id"))
        reason, own = reason_of(answer.status, answer.text)
        return refusal(answer.status, answer.headers, reason, own=own)

    def fetch(self, provider_id: str) -> FaxState:
        """How it stands. An unknown status ends nothing."""
        fax = _fax(self._ok(self._api.get(self._of(provider_id))))
        status = text_of(fax, "status")
        if status == "delivered":
            return Delivered()
        if status == "failed":
            return undelivered(str(fax.get("failure_reason") or "failed"))
        if status not in _PENDING:
            logger.warning("unknown fax status", status=redact(status), provider_id=provider_id)
        return Pending(status)

    def find(self, to: str, reference: str, since: float) -> list[str]:
        """The faxes since then, in whole seconds, that carry this attempt's reference."""
        oldest = math.floor(since)
        state = _state(reference)
        found = [fax for fax in self._listed(to, oldest) if fax.get("client_state") == state]
        found = [fax for fax in found if _created(fax) >= oldest]
        found.reverse()  # the list is newest first, and sorting keeps that order within a second
        return [text_of(fax, "id") for fax in sorted(found, key=_created)]

    def cancel(self, provider_id: str) -> None:
        """Ask for it to be stopped, which Telnyx does up to its last page."""
        self._ok(self._api.post(f"{self._of(provider_id)}/actions/cancel"))

    def _of(self, provider_id: str) -> str:
        return f"{self._faxes}/{quote(provider_id, safe='')}"

    def _ok(self, answer: Answer) -> Answer:
        if not 200 <= answer.status < 300:
            raise Unclear(reason_of(answer.status, answer.text)[0])
        return answer

    def _listed(self, to: str, oldest: int) -> Iterator[dict[str, Any]]:
        after = datetime.fromtimestamp(oldest - _SLACK_SECONDS, UTC)
        filters = {
            "filter[created_at][gte]": after.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "filter[to][eq]": to,
            "filter[direction][eq]": "outbound",
            "page[size]": str(_PAGE_SIZE),
        }
        for number in range(1, _MAX_PAGES + 1):
            answer = self._ok(self._api.get(self._faxes, {**filters, "page[number]": str(number)}))
            body = body_of(answer.status, answer.text)
            faxes = body.get("data")
            if not isinstance(faxes, list):
                raise Unclear("a list of faxes without data")
            yield from faxes
            pages = (body.get("meta") or {}).get("total_pages")
            if not faxes or (isinstance(pages, int) and number >= pages):
                return
        raise Unclear(f"a list of faxes of more than {_MAX_PAGES} pages")


def _state(reference: str) -> str:
    return b64encode(reference.encode()).decode()


def _fax(answer: Answer) -> dict[str, Any]:
    fax = body_of(answer.status, answer.text).get("data")
    if not isinstance(fax, dict):
        raise Unclear(f"an answer ({answer.status}) without data")
    return fax


def _created(fax: dict[str, Any]) -> float:
    return epoch(text_of(fax, "created_at"))


_STATUSES = {"user_busy": "busy", "receiver_no_answer": "no-answer", "sender_canceled": "canceled"}
_GIVE_UP = {
    "file_format_invalid",
    "file_size_limit_exceeded",
    "page_count_limit_exceeded",
    "receiver_invalid_number_format",
    "receiver_unallocated_number",
    "unverified_destination_not_allowed",
}
_GIVE_UP_PREFIXES = ("destination_invalid", "destination_not_in_")
"""All other reasons, also ones that Telnyx adds one day, are worth another attempt: a page too many costs
less than a fax that was given up for no cause. So is `account_disabled`: it is no fault of the fax, and its
next submit is refused, which rings an alarm."""

_OWN_CODES = {
    "10002",  # the number is not valid
    "10003",  # the URL is not valid, or too long
    "10015",  # a bad request
    "10016",  # the number is not in E.164's form
}
"""Source: https://developers.telnyx.com/development/api-fundamentals/api-errors (2026-11-26)."""
_OWN_FIELDS = {"to", "media_url"}
"""The fields that come from the fax; all others come from our settings."""


def undelivered(reason: str) -> Undelivered:
    """What a failure reason means: its status in the other provider's words where these have one."""
    again = reason not in _GIVE_UP and not reason.startswith(_GIVE_UP_PREFIXES)
    shown = redact(reason)
    return Undelivered(_STATUSES.get(reason, shown), again, detail=shown)


def reason_of(status: int, text: str) -> tuple[str, bool]:
    """A sentence for the ledger and the log, and whether the fault is the fax's own."""
    errors = _errors(status, text)
    sentences = [
        f"{each.get('code', '')}: {each.get('detail') or each.get('title') or ''}".strip() for each in errors
    ]
    shown = redact("; ".join(sentences) or "no reason given")
    own = bool(errors) and all(_is_own(each) for each in errors)
    return f"Telnyx answered {status}: {shown}", own


def _errors(status: int, text: str) -> list[dict[str, Any]]:
    errors = object_in(status, text).get("errors")
    return [each for each in errors if isinstance(each, dict)] if isinstance(errors, list) else []


def _is_own(error: dict[str, Any]) -> bool:
    source = error.get("source")
    pointer = str(source.get("pointer") or source.get("parameter") or "") if isinstance(source, dict) else ""
    return str(error.get("code")) in _OWN_CODES and pointer.strip("/").split("/")[-1] in _OWN_FIELDS
