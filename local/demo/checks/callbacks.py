"""What came to the webhook receiver: each request verified as its receiver should, repeats dropped."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

CALLBACKS, MESSAGES = "callbacks", "messages"


@dataclass(frozen=True)
class Callback:
    """One request. `about` is the end of its path: the id of the message that it tells of."""

    webhook_id: str
    kind: str
    about: str
    payload: Any
    verified: bool


def read(received: Iterable[Mapping[str, Any]], key: str) -> list[Callback]:
    """All requests, oldest first. `key` is the receiver's own, as `mailroom webhook-key` prints it."""
    webhook = Webhook(key)
    return [_callback(each, webhook) for each in received]


def different(callbacks: Iterable[Callback]) -> list[Callback]:
    """Without repeats of a webhook-id, as a receiver sees to it."""
    first: dict[str, Callback] = {}
    for each in callbacks:
        first.setdefault(each.webhook_id, each)
    return list(first.values())


def _callback(request: Mapping[str, Any], webhook: Webhook) -> Callback:
    headers, body = request["headers"], request.get("body", "")
    *_, kind, about = request["path"].split("/")
    return Callback(
        headers.get("webhook-id", ""), kind, about, _json(body), _verifies(webhook, body, headers)
    )


def _verifies(webhook: Webhook, body: str, headers: dict[str, str]) -> bool:
    try:
        webhook.verify(body, headers)
    except WebhookVerificationError:
        return False
    return True


def _json(body: str) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None
