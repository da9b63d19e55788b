"""Providers' events, as tests tell them."""

from typing import Any

from mailroom.message.message import Key
from mailroom.message.outcome import Event, Status

AT = 1_795_251_600_000
WORDS: dict[Status, str] = {
    "sent": "Send",
    "delivered": "Delivery",
    "undelivered": "Reject",
    "bounced": "Bounce",
    "complained": "Complaint",
}


def ses_event(key: Key, status: Status | None, **changes: Any) -> Event:
    """An event of SES about the first attempt, as of its one recipient."""
    return Event(
        **{
            "key": key,
            "attempt": 1,
            "provider": "ses",
            "provider_id": "p-1",
            "kind": WORDS[status] if status else "Open",
            "status": status,
            "facts": {},
            "recipients": (),
            "at": AT,
            **changes,
        }
    )
