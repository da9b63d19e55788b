"""Check what came to the webhook receiver: signatures, repeats, missing and unexpected callbacks."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hmac import compare_digest
from typing import Any

from standardwebhooks.webhooks import Webhook

from local.demo.scenarios import CALLBACKS, MESSAGES, Notice

TOLERANCE = timedelta(minutes=5)
"""The package's own: a request whose signature is older, or newer, is refused."""


@dataclass(frozen=True)
class ReceivedCallback:
    """One request. `about` is the end of its path: the id of the message that it reports."""

    webhook_id: str
    kind: str
    about: str
    payload: Any
    verified: bool


@dataclass(frozen=True)
class CallbackCheck:
    """`received` counts requests, `different` their webhook-ids, `verified` those with a right signature;
    `missing` counts callbacks and webhooks that should have come, `webhooks` messages that arrived."""

    received: int
    different: int
    verified: int
    missing: int
    webhooks: int
    failures: list[str] = field(default_factory=list)


def read(received: Iterable[Mapping[str, Any]], key: str) -> list[ReceivedCallback]:
    """All requests, oldest first. `key` is the receiver's own, as `mailroom webhook-key` prints it."""
    webhook = Webhook(key)
    return [_callback(each, webhook) for each in received]


def different(callbacks: Iterable[ReceivedCallback]) -> list[ReceivedCallback]:
    """The callbacks without repeats of a webhook-id, which a receiver drops."""
    first: dict[str, ReceivedCallback] = {}
    for each in callbacks:
        first.setdefault(each.webhook_id, each)
    return list(first.values())


def check_callbacks(
    callbacks: Sequence[ReceivedCallback],
    expected: Mapping[str, Sequence[Notice]],
    webhooks: Mapping[str, Any],
) -> CallbackCheck:
    """Compare. `expected` are the callbacks of each message in their order, `webhooks` the payloads of
    webhook messages; both by the message's id."""
    once = different(callbacks)
    missing, failures = 0, []
    for id_, wanted in expected.items():
        lacking, wrong = _compare(id_, _notices(once, id_), wanted)
        missing += lacking
        failures += wrong
    arrived = {each.about: each.payload for each in once if each.kind == MESSAGES}
    lost = [id_ for id_ in webhooks if id_ not in arrived]
    unverified = [each for each in callbacks if not each.verified]
    return CallbackCheck(
        received=len(callbacks),
        different=len(once),
        verified=sum(each.verified for each in once),
        missing=missing + len(lost),
        webhooks=len(arrived),
        failures=[
            *(f"A request about {each.about} has a wrong signature." for each in unverified),
            *failures,
            *(f"The webhook {id_} did not arrive." for id_ in lost),
            *_unexpected(once, expected, webhooks),
        ],
    )


def _callback(request: Mapping[str, Any], webhook: Webhook) -> ReceivedCallback:
    headers, body = request["headers"], request.get("body", "")
    *_, kind, about = request["path"].split("/")
    verified = _is_verified(webhook, headers, body, datetime.fromisoformat(request["received_at"]))
    try:
        payload = json.loads(body)
    except ValueError:
        payload = None
    return ReceivedCallback(headers.get("webhook-id", ""), kind, about, payload, verified)


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


def _compare(id_: str, came: Sequence[Notice], wanted: Sequence[Notice]) -> tuple[int, list[str]]:
    """How many callbacks about a message are missing, and what is wrong."""
    wanted = _without_overtaken(came, wanted)
    left, missing = list(came), []
    for want in wanted:
        match = next((each for each in left if _matches(each, want)), None)
        if match is None:
            missing.append(want)
        else:
            left.remove(match)
    failures = [f"{id_}: no callback {want[0]!r}." for want in missing]
    extra = [each for each in came if not any(_matches(each, want) for want in wanted)]
    if extra:
        failures += [f"{id_}: unexpected callback {status!r}: {message}" for status, message in extra]
    elif len(came) > len(wanted):
        failures.append(f"{id_} had {len(came)} different callbacks instead of {len(wanted)}.")
    elif not missing and not all(map(_matches, came, wanted)):
        failures.append(f"The timestamps of the callbacks about {id_} have another order.")
    return len(missing), failures


def _without_overtaken(came: Sequence[Notice], wanted: Sequence[Notice]) -> Sequence[Notice]:
    """A provider's report may come in before the sender has recorded `sent`: then the message never has that
    status, and there is no callback for it."""
    first, *rest = wanted
    overtaken = first[0] == "sent" and any(_matches(each, want) for each in came for want in rest)
    return rest if overtaken and not any(_matches(each, first) for each in came) else wanted


def _matches(notice: Notice, wanted: Notice) -> bool:
    return notice[0] == wanted[0] and notice[1].startswith(wanted[1])


def _unexpected(
    callbacks: Sequence[ReceivedCallback],
    expected: Mapping[str, Sequence[Notice]],
    webhooks: Mapping[str, Any],
) -> Iterable[str]:
    for each in callbacks:
        if each.kind == MESSAGES and each.about in webhooks:
            if each.payload != webhooks[each.about]:
                yield f"The webhook {each.about} arrived with another payload."
        elif each.kind != CALLBACKS or each.about not in expected:
            yield f"No callback about {each.about} was asked for."
