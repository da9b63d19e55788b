"""Requests that the simulated providers accepted, by message."""

import base64
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from lab.harness.callbacks import ReceivedCallback, different
from lab.harness.expected import MESSAGES, Item, Key

UNKNOWN = "a request without a message id"
MARK = "demo_id"
"""Key in the data of each push message whose value is the message's id."""


@dataclass(frozen=True)
class Acceptance:
    """A submit that a provider accepted, at `at` (epoch seconds). `raw` is the provider's entry for it.

    `delivered` is whether a fax was delivered; the delivery of other messages is reported by events.
    `overlaps` is the number of other faxes that were in transmission to the number at that time. `unread` is
    True if the provider could not fetch the document.
    """

    key: Key
    at: float
    to: str
    raw: Item
    provider_id: str | None = None
    delivered: bool = True
    overlaps: int = 0
    unread: bool = False


def acceptances(
    inbox: Iterable[Item], faxes: Iterable[Item], webhooks: Sequence[ReceivedCallback]
) -> dict[Key, list[Acceptance]]:
    """Return the acceptances by message, oldest first. Repeated webhooks with the same webhook-id count once,
    as for their receiver."""
    listed = [
        *(_of_inbox(entry) for entry in inbox if entry["channel"] in READERS),
        *(_of_fax(fax) for fax in faxes),
        *(
            Acceptance((webhook.about, "webhook"), webhook.at, webhook.about, {})
            for webhook in different(webhooks)
            if webhook.kind == MESSAGES
        ),
    ]
    by_key: dict[Key, list[Acceptance]] = defaultdict(list)
    for acceptance in sorted(listed, key=lambda acceptance: acceptance.at):
        by_key[acceptance.key].append(acceptance)
    return by_key


def id_of_mail(mail: Item) -> str:
    """Return the id of a mail's message, from its header."""
    return _decoded(mail["content"]["headers"].get("X-Correlation-ID", ""))


def _id_of_sms(sms: Item) -> str:
    return _decoded(sms["content"]["callback"].rpartition("/")[2])


def _id_of_push(push: Item) -> str:
    mark = re.search(rf'"{MARK}": "([^"]+)"', json.dumps(push["content"]["payloads"]))
    return mark[1] if mark else UNKNOWN


READERS = {"mail": id_of_mail, "sms": _id_of_sms, "push": _id_of_push}
"""Functions that return the message's id of an accepted request, by channel."""


def _of_inbox(entry: Item) -> Acceptance:
    key = READERS[entry["channel"]](entry), entry["channel"]
    seconds = datetime.fromisoformat(entry["received_at"]).timestamp()
    return Acceptance(key, seconds, entry.get("to", ""), entry, entry.get("provider_id"))


def _of_fax(fax: Item) -> Acceptance:
    """Return the acceptance of a fax. The name of its document is the message's id."""
    return Acceptance(
        (PurePosixPath(urlsplit(fax["media_url"]).path).stem, "fax"),
        fax["created"],
        fax["to"],
        fax,
        delivered=fax["status"] == "delivered",
        overlaps=len(fax["overlaps"]),
        unread=fax["media_ok"] is False,
    )


def _decoded(reference: str) -> str:
    """Return the id from a reference: its base64url form, and for a further attempt a dot and the number of
    the attempt."""
    coded = reference.partition(".")[0]
    try:
        return base64.urlsafe_b64decode(coded + "=" * (-len(coded) % 4)).decode() or UNKNOWN
    except ValueError:
        return UNKNOWN
