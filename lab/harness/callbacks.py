"""Requests to the webhook receiver: which callbacks came, signed by whom, and what is wrong with them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hmac import compare_digest
from typing import Any

from standardwebhooks.webhooks import Webhook

from lab.harness.expected import CALLBACKS, Notice

TOLERANCE = timedelta(minutes=5)
"""The package's own: a request whose signature is older, or newer, is refused."""


@dataclass(frozen=True)
class ReceivedCallback:
    """Request at `at` (epoch seconds). `about` is the end of its path: the id of the message that it
    reports, or is."""

    webhook_id: str
    kind: str
    about: str
    payload: Any
    verified: bool
    at: float = 0.0


def read(received: Iterable[Mapping[str, Any]], key: str) -> list[ReceivedCallback]:
    """Return the requests, oldest first. `key` is the receiver's key, as `mailroom webhook-key` prints it."""
    webhook = Webhook(key)
    return [_callback(each, webhook) for each in received]


def different(callbacks: Iterable[ReceivedCallback]) -> list[ReceivedCallback]:
    """The callbacks without repeats of a webhook-id, which a receiver drops."""
    first: dict[str, ReceivedCallback] = {}
    for each in callbacks:
        first.setdefault(each.webhook_id, each)
    return list(first.values())


def notice_faults(id_: str, callbacks: Sequence[ReceivedCallback], wanted: Sequence[Notice]) -> list[str]:
    """Return the errors in a message's callbacks. `wanted` are those that it must have, in their order;
    `callbacks` may be about others too."""
    came = _notices(callbacks, id_)
    wanted = _without_overtaken(came, wanted)
    left, missing = list(came), []
    for want in wanted:
        match = next((each for each in left if _matches(each, want)), None)
        if match is None:
            missing.append(want)
        else:
            left.remove(match)
    faults = [f"{id_}: no callback {want[0]!r}." for want in missing]
    extra = [each for each in came if not any(_matches(each, want) for want in wanted)]
    if extra:
        faults += [f"{id_}: unexpected callback {status!r}: {message}" for status, message in extra]
    elif len(came) > len(wanted):
        faults.append(f"{id_} had {len(came)} different callbacks instead of {len(wanted)}.")
    elif not missing and not all(map(_matches, came, wanted)):
        faults.append(f"The timestamps of the callbacks about {id_} have another order.")
    return faults


def _callback(request: Mapping[str, Any], webhook: Webhook) -> ReceivedCallback:
    headers, body = request["headers"], request.get("body", "")
    *_, kind, about = request["path"].split("/")
    received = datetime.fromisoformat(request["received_at"])
    try:
        payload = json.loads(body)
    except ValueError:
        payload = None
    verified = _is_verified(webhook, headers, body, received)
    return ReceivedCallback(
        headers.get("webhook-id", ""), kind, about, payload, verified, received.timestamp()
    )


def _is_verified(webhook: Webhook, headers: Mapping[str, str], body: str, received: datetime) -> bool:
    """Whether the receiver would have believed the request when it came. The package's own `verify` asks for
    the age by the clock of now, and a run may be judged much later."""
    try:
        signed = datetime.fromtimestamp(int(headers["webhook-timestamp"]), UTC)
        expected = webhook.sign(headers["webhook-id"], signed, body)
        given = headers["webhook-signature"].split(" ")
    except (KeyError, ValueError):
        return False
    return abs(received - signed) <= TOLERANCE and any(compare_digest(each, expected) for each in given)


def _notices(callbacks: Sequence[ReceivedCallback], id_: str) -> list[Notice]:
    """The callbacks about a message, by the payloads' own ids and in the order of their timestamps."""
    payloads = [each.payload for each in callbacks if each.kind == CALLBACKS and each.about == id_]
    own = [each for each in payloads if isinstance(each, dict) and each.get("fax_id", each.get("id")) == id_]
    own.sort(key=lambda each: (each.get("timestamp", 0), _place(each)))
    return [(str(each.get("status")), str(each.get("message"))) for each in own]


def _place(payload: Mapping[str, Any]) -> int:
    """The place within one second: attempts by their number, then `sent`, then what followed."""
    if payload.get("status") != "tmp_fail":
        return 1_000 if payload.get("status") == "sent" else 1_001
    number = str(payload.get("message")).partition("attempt ")[2].partition(" ")[0]
    return int(number) if number.isdecimal() else 0


def _without_overtaken(came: Sequence[Notice], wanted: Sequence[Notice]) -> Sequence[Notice]:
    """A provider's report may come in before the sender has recorded `sent`: then the message never has that
    status, and there is no callback for it."""
    first, *rest = wanted
    overtaken = first[0] == "sent" and any(_matches(each, want) for each in came for want in rest)
    return rest if overtaken and not any(_matches(each, first) for each in came) else wanted


def _matches(notice: Notice, wanted: Notice) -> bool:
    return notice[0] == wanted[0] and notice[1].startswith(wanted[1])
