"""Callbacks: what is told to a message's `callback_url`, of each change of its status."""

import hashlib
from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct

from mailroom.http.url_policy import host_of
from mailroom.ledger.change import LedgerChange
from mailroom.message.message import MAX_GROUP, Key

OF_THE_LINE = "Fax status: "
"""How the error of a fax begins whose line, not whose request, was at fault."""
SILENT = ("sending", "scheduled")
"""Statuses that are no outcome: a message passes through them, after a crash even twice."""

_SENTENCES = {
    "sent": "{channel} sent successfully",
    "delivered": "{channel} delivered",
    "undelivered": "{channel} could not be delivered",
    "bounced": "{channel} bounced",
    "complained": "The recipient complained about the {lower}",
    "suppressed": "{channel} suppressed",
    "cancelled": "{channel} cancelled",
    "failed": "Failed to send {lower}",
    "retrying": "{channel} will be tried again",
}
_FAX_STATUSES = {"retrying": "tmp_fail", **dict.fromkeys(("failed", "cancelled", "suppressed"), "perm_fail")}


class Callback(Struct, frozen=True):
    """One body of the webhook queue. `name` is its key in the ledger item's `callbacks`.

    `webhook_id` is derived from what it tells, so that a repeat has the same and a receiver can drop it.
    """

    webhook_id: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,128}$")]
    url: str
    id: Annotated[str, Meta(min_length=1)]
    event_type: Annotated[str, Meta(min_length=1)]
    name: Annotated[str, Meta(min_length=1)]
    payload: Any

    @property
    def key(self) -> Key:
        """The message that it tells of."""
        return Key(self.id, self.event_type)

    @property
    def group(self) -> str:
        """The endpoint: one that is dead or slow must not hold up the others."""
        return host_of(self.url)[:MAX_GROUP] or "unknown"


def callback_of(change: LedgerChange, max_attempts: int) -> Callback | None:
    """What to tell of a change; None where nobody asked, or where it is no outcome.

    `max_attempts` is a fax's, for the sentences.
    """
    url = change.new.get("callback_url")
    if not url or not change.moved or change.reopened or change.status in SILENT:
        return None
    name = f"{change.status}.{change.attempts}"
    if change.generation:
        name += f".{change.generation}"
    key = change.key
    digest = hashlib.sha256("\0".join((key.event_type, key.id, name)).encode()).hexdigest()
    payload = _fax(change, max_attempts) if key.event_type == "fax" else _common(change)
    return Callback(f"msg_{digest[:40]}", url, key.id, key.event_type, name, payload)


def _common(change: LedgerChange) -> dict[str, Any]:
    return {
        "id": change.key.id,
        "event_type": change.key.event_type,
        "status": change.status,
        "message": _sentence(change),
        "timestamp": int(change.at),
    }


def _sentence(change: LedgerChange) -> str:
    channel = change.key.event_type
    default = _SENTENCES.get(change.status, "{channel}: {status}")
    said = default.format(channel=_titled(channel), lower=channel, status=change.status)
    reason = _error(change).get("message")
    return f"{said}: {reason}" if reason and change.status not in {"sent", "delivered"} else said


def _titled(channel: str) -> str:
    return channel.upper() if channel == "sms" else channel.capitalize()


def _fax(change: LedgerChange, max_attempts: int) -> dict[str, Any]:
    """In the words that users of a fax gateway know."""
    return {
        "fax_id": change.key.id,
        "status": _FAX_STATUSES.get(change.status, change.status),
        "message": _fax_sentence(change, max_attempts),
        "timestamp": int(change.at),
    }


def _fax_sentence(change: LedgerChange, max_attempts: int) -> str:
    error = _error(change)
    match change.status:
        case "sent":
            return "Fax sent successfully"
        case "retrying":
            attempt = f"attempt {change.attempts} of {max_attempts}"
            return f"Failed to deliver fax ({attempt}). Fax status: {error.get('code')}"
        case "failed" if change.attempts and _of_the_line(error):
            tries = "try" if change.attempts == 1 else "tries"
            return (
                f"Failed to deliver fax after {change.attempts} {tries}. "
                f"Last attempt status: {error.get('code')}"
            )
        case "failed":
            return f"Failed to deliver fax: {error.get('message')}"
    return _sentence(change)


def _of_the_line(error: Mapping[str, Any]) -> bool:
    """Whether an attempt's own end is the reason, and not something that ended it before it began."""
    return str(error.get("message", "")).startswith(OF_THE_LINE)


def _error(change: LedgerChange) -> Mapping[str, Any]:
    error = change.new.get("error", {})
    return error if isinstance(error, Mapping) else {}
