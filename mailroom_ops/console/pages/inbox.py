"""Pages of the local stage's inbox: messages that the simulated providers accepted, shown as their recipients
see them."""

import hmac
import json
import os
import re
import urllib.request
from collections.abc import Callable, Hashable, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec
from msgspec import Struct
from standardwebhooks import Webhook

from mailroom.aws.dynamo_values import string
from mailroom.channels.contracts import CHANNELS
from mailroom.clock import iso
from mailroom.message.message import Reference, begun_of
from mailroom_ops.console.site import Answer, Frame, Goto, Request, Shown, Site, View, link
from mailroom_ops.setup.webhook_key import key_of, spelt_host
from mailroom_ops.shared.deployed_stage import name
from mailroom_ops.shared.refusals import Refused

LISTED = 50
TABS = {name: each.messages for name, each in CHANNELS.items()}
_TOLD = {"status", "message", "timestamp", "timestamp_ms"}
_CALLBACKS = (_TOLD | {"id", "event_type"}, _TOLD | {"fax_id"})
"""Keys in the body of a callback, and in the body of a fax's callback."""
_SOMETIMES = {"field", "template", "template_version"}
_SECONDS = 10.0

Item = dict[str, Any]
K = TypeVar("K", bound=Hashable)


class Group(Struct, frozen=True):
    """Messages to one recipient, the oldest first: texts to a number, or the attempts to send a fax."""

    to: str
    what: str
    items: list[Item]


class ReceivedWebhook(Struct, frozen=True):
    """Last of the requests to the stage's webhook receiver that have the same webhook-id. `tries` is their
    number among the newest requests; `url` is the page of the message."""

    at: str
    path: str
    webhook_id: str
    verified: bool
    callback: bool
    body: str
    url: str
    tries: int


class Inbox(View, frozen=True):
    """Values of the page of a channel."""

    tab: str
    tabs: dict[str, str]
    counts: dict[str, int]
    found: list[Any]
    """Items of the simulators, groups of items, or received webhooks, depending on the channel."""


class InboxMail(View, frozen=True):
    """Values of the page of a mail."""

    mail: Item
    content: Item
    id: str
    """Id of the message; empty if the mail does not have it."""


def show(site: Site, request: Request) -> Answer:
    """Show the messages that a channel's provider accepted, the newest first."""
    tab = request["channel"] if request["channel"] in TABS else "mail"
    items: list[Any]
    counts = {**_fetch("/inbox/channels"), "webhook": _fetch("/receiver/count")["count"]}
    match tab:
        case "webhook":
            received = _fetch("/receiver/received", last=LISTED)
            tries = _together(received, lambda attempt: attempt["headers"].get("webhook-id", ""))
            items = [_webhook(site, *entry) for entry in tries.items()]
        case "fax":
            faxes = [{**fax, "at": iso(fax["created"])} for fax in _fetch("/faxes")]
            items = _grouped(faxes, lambda fax: fax["media_url"].partition("?")[0])
        case "sms":
            items = _grouped(_newest(tab), lambda _: "")
        case "push":
            items = [{**item, "shown": _notification(item["content"])} for item in _newest(tab)]
        case _:
            items = [{**item, "campaign": _campaign_of(_id_of(item))} for item in _newest(tab)]
    return Shown(Inbox(tab, TABS, counts, items[::-1][:LISTED]))


def mail(_site: Site, request: Request) -> Answer:
    """Show a mail as a mail program would."""
    item = _mail(request)
    content = item["content"]
    return Shown(InboxMail(item, content, _id_of(item)), content["subject"] or "(no subject)")


def _id_of(mail: Item) -> str:
    """Return the message id in a mail's header, or an empty text if the header does not have it."""
    reference = Reference.found_in(mail["content"].get("headers", {}).get("X-Correlation-ID", ""))
    return reference.id if reference else ""


def _campaign_of(id_: str) -> str:
    """Return the campaign in an id of the form that runs give their messages, or an empty text."""
    return "" if begun_of(id_) is None else id_.partition("#")[0]


def frame(_site: Site, request: Request) -> Answer:
    """Return the HTML of a mail, for its frame, with its inline images."""
    content = _mail(request)["content"]
    html = content["html"] or ""
    for attachment in content["attachments"]:
        if attachment["content_id"]:
            html = html.replace(f"cid:{attachment['content_id']}", attachment["url"])
    return Frame(html)


def message(site: Site, request: Request) -> Answer:
    """Redirect from an accepted message to its page. The ledger does not have an index by provider ids, so
    its table is scanned, which is fast on the small local stage. Raises Refused if the message is not
    found."""
    pages = (
        site.client("dynamodb")
        .get_paginator("scan")
        .paginate(
            TableName=name(site.stage, "ledger"),
            FilterExpression="provider_id = :provider_id",
            ExpressionAttributeValues={":provider_id": string(request["provider_id"])},
            ProjectionExpression="id, event_type",
        )
    )
    item = next((item for page in pages for item in page["Items"]), None)
    if item is None:
        raise Refused("No message has this provider id yet: it is being sent, or was sent again.")
    return Goto(link("/message", id=item["id"]["S"], channel=item["event_type"]["S"]))


def _newest(channel: str) -> list[Item]:
    items: list[Item] = _fetch("/inbox", channel=channel, last=LISTED)
    return items


def _mail(request: Request) -> Item:
    items: list[Item] = _fetch("/inbox", id=request["id"])
    if not items or items[0]["channel"] != "mail":
        raise Refused("The inbox has no such mail. A stage that was started anew has an empty inbox.")
    return items[0]


def _fetch(path: str, **query: str | int) -> Any:
    """Return the response of the providers' simulators. Raises Refused if they do not respond."""
    providers = os.environ.get("MAILROOM_PROVIDERS", "")
    if not providers.startswith("http://127.0.0.1:"):
        raise Refused(
            "Only the local stage has an inbox: run `mailroom up`, then `. .local/env`, then "
            "`mailroom console`."
        )
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(f"{providers}{path}?{urlencode(query)}", timeout=_SECONDS) as reply:
            return json.loads(reply.read())
    except OSError:
        raise Refused(
            f"The simulators at {providers} do not answer. Start the stage anew: `mailroom up`."
        ) from None


def _grouped(items: list[Item], kind: Callable[[Item], str]) -> list[Group]:
    """Group items by recipient, and by the result of `kind`."""
    groups = _together(items, lambda item: (item["to"], kind(item)))
    return [Group(*key, members) for key, members in groups.items()]


def _together(items: Iterable[Item], key: Callable[[Item], K]) -> dict[K, list[Item]]:
    """Group items by a key; the group with the newest item comes last."""
    groups: dict[K, list[Item]] = {}
    for item in items:
        groups[key(item)] = [*groups.pop(key(item), []), item]
    return groups


def _notification(content: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the `title` and `body` of a push, which the device shows."""
    for payload in content["payloads"].values():
        for path in (("aps", "alert"), ("fcmV1Message", "message", "notification")):
            notification = payload
            for part in path:
                notification = notification.get(part) if isinstance(notification, dict) else None
            if isinstance(notification, dict):
                return notification
    return {"body": content["subject"]}


def _webhook(site: Site, webhook_id: str, tries: list[Item]) -> ReceivedWebhook:
    request = tries[-1]
    body = request.get("body", "")
    try:
        payload = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        payload = None
    callback = isinstance(payload, dict) and {*payload} - _SOMETIMES in _CALLBACKS
    if callback:
        id_, channel = payload.get("id", payload.get("fax_id")), payload.get("event_type", "fax")
        url = link("/message", id=f"{id_}", channel=f"{channel}")
    else:
        url = link("/inbox/message", provider_id=webhook_id)
    return ReceivedWebhook(
        request["received_at"],
        request["path"],
        webhook_id,
        all(_is_signed(site, attempt["headers"], attempt.get("body", "")) for attempt in tries),
        callback,
        body if payload is None else json.dumps(payload, indent=2, ensure_ascii=False),
        url,
        len(tries),
    )


def _is_signed(site: Site, headers: Mapping[str, str], body: str) -> bool:
    """Return whether a request has the stage's signature for its host, of any age. The library's `verify` is
    not used, because it accepts only signatures of the last five minutes."""
    moment = headers.get("webhook-timestamp", "")
    if not re.fullmatch("[0-9]{1,10}", moment):
        return False
    host = spelt_host(f"http://{headers['host']}")
    key = site.kept(f"webhook key of {host}", partial(key_of, site.session, site.stage, host))
    expected = Webhook(key).sign(
        headers.get("webhook-id", ""), datetime.fromtimestamp(int(moment), UTC), body
    )
    signatures = headers.get("webhook-signature", "").split(" ")
    return any(hmac.compare_digest(expected.encode(), signature.encode()) for signature in signatures)
