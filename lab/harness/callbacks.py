"""Requests to the webhook receiver: the received callbacks, whether their signatures are valid, and
differences from the expected callbacks."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hmac import compare_digest
from typing import Any

from standardwebhooks.webhooks import Webhook

from lab.harness.expected import CALLBACKS, Notice

TOLERANCE = timedelta(minutes=5)
"""Tolerance of the package standardwebhooks: a request whose signature is older or newer is refused."""


@dataclass(frozen=True)
class ReceivedCallback:
    """Request at `at` (epoch seconds). `about` is the end of its path: the id of the webhook message, or of
    the message that a callback reports."""

    webhook_id: str
    kind: str
    about: str
    payload: Any
    verified: bool
    at: float = 0.0


def read(received: Iterable[Mapping[str, Any]], key: str) -> list[ReceivedCallback]:
    """Return the requests, oldest first. `key` is the receiver's key, as `mailroom webhook-key` prints it."""
    webhook = Webhook(key)
    return [_callback(request, webhook) for request in received]


def different(callbacks: Iterable[ReceivedCallback]) -> list[ReceivedCallback]:
    """Return the callbacks without repetitions of a webhook-id, which a receiver ignores."""
    first: dict[str, ReceivedCallback] = {}
    for callback in callbacks:
        first.setdefault(callback.webhook_id, callback)
    return list(first.values())


def notice_faults(
    id_: str, callbacks: Sequence[ReceivedCallback], expected_notices: Sequence[Notice]
) -> list[str]:
    """Return the errors in the callbacks of a message. `expected_notices` are the callbacks that it must
    have, in order. `callbacks` may contain those of other messages."""
    came = _notices(callbacks, id_)
    expected_notices = _without_overtaken(came, expected_notices)
    unmatched, missing = list(came), []
    for want in expected_notices:
        match = next((notice for notice in unmatched if _matches(notice, want)), None)
        if match is None:
            missing.append(want)
        else:
            unmatched.remove(match)
    faults = [f"{id_}: no callback {want[0]!r}." for want in missing]
    extra = [notice for notice in came if not any(_matches(notice, want) for want in expected_notices)]
    if extra:
        faults += [f"{id_}: unexpected callback {status!r}: {message}" for status, message in extra]
    elif len(came) > len(expected_notices):
        faults.append(f"{id_} had {len(came)} different callbacks instead of {len(expected_notices)}.")
    elif not missing and not all(map(_matches, came, expected_notices)):
        faults.append(f"The callbacks about {id_} have timestamps in another order than expected.")
    return faults


def _callback(request: Mapping[str, Any], webhook: Webhook) -> ReceivedCallback:
    headers, body = request["headers"], request.get("body", "")
    *_, kind, id_ = request["path"].split("/")
    received = datetime.fromisoformat(request["received_at"])
    try:
        payload = json.loads(body)
    except ValueError:
        payload = None
    verified = _is_verified(webhook, headers, body, received)
    return ReceivedCallback(headers.get("webhook-id", ""), kind, id_, payload, verified, received.timestamp())


def _is_verified(webhook: Webhook, headers: Mapping[str, str], body: str, received: datetime) -> bool:
    """Return whether the signature was valid when the request was received. The package's own `verify`
    compares its age with the current time, but a run may be checked much later."""
    try:
        signed = datetime.fromtimestamp(int(headers["webhook-timestamp"]), UTC)
        expected = webhook.sign(headers["webhook-id"], signed, body)
        signatures = headers["webhook-signature"].split(" ")
    except (KeyError, ValueError):
        return False
    return abs(received - signed) <= TOLERANCE and any(
        compare_digest(signature, expected) for signature in signatures
    )


def _notices(callbacks: Sequence[ReceivedCallback], id_: str) -> list[Notice]:
    """Return the callbacks about a message whose payloads have its id, ordered by their timestamps."""
    payloads = [
        callback.payload for callback in callbacks if callback.kind == CALLBACKS and callback.about == id_
    ]
    notices = [
        payload
        for payload in payloads
        if isinstance(payload, dict) and payload.get("fax_id", payload.get("id")) == id_
    ]
    notices.sort(key=lambda payload: (payload.get("timestamp", 0), _place(payload)))
    return [(str(notice.get("status")), str(notice.get("message"))) for notice in notices]


def _place(payload: Mapping[str, Any]) -> int:
    """Return the order of a callback within one second: attempts by their number, then `sent`, then later
    statuses."""
    if payload.get("status") != "tmp_fail":
        return 1_000 if payload.get("status") == "sent" else 1_001
    number = str(payload.get("message")).partition("attempt ")[2].partition(" ")[0]
    return int(number) if number.isdecimal() else 0


def _without_overtaken(came: Sequence[Notice], expected: Sequence[Notice]) -> Sequence[Notice]:
    """Return the callbacks that must have been received. If a provider's report arrives before the sender has
    recorded `sent`, the message never has that status, and there is no callback about it."""
    first, *later = expected
    overtaken = first[0] == "sent" and any(_matches(notice, want) for notice in came for want in later)
    return later if overtaken and not any(_matches(notice, first) for notice in came) else expected


def _matches(notice: Notice, expected: Notice) -> bool:
    return notice[0] == expected[0] and notice[1].startswith(expected[1])
