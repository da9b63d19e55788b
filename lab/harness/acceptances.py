"""Acceptances of the simulated providers, by message."""

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

UNKNOWN = "something that names no message"
MARK = "demo_id"
"""An entry in the data of each push that holds the message's id."""


@dataclass(frozen=True)
class Acceptance:
    """A submit that a provider accepted, at `at` (epoch seconds). `raw` is the provider's own entry.

    `delivered` says how a fax ended; what other messages came to is told by reports. `overlaps` counts faxes
    that were under way to the same number; `unread` says that the provider could not fetch the document."""

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
    """Acceptances by message, oldest first. A webhook that came again under its webhook-id counts once, as
    for its receiver."""
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
    """The id of the message that a mail was sent for, from its header."""
    return _decoded(mail["content"]["headers"].get("X-Correlation-ID", ""))


def _id_of_sms(sms: Item) -> str:
    return _decoded(sms["content"]["callback"].rpartition("/")[2])


def _id_of_push(push: Item) -> str:
    mark = re.search(rf'"{MARK}": "([^"]+)"', json.dumps(push["content"]["payloads"]))
    return mark[1] if mark else UNKNOWN


READERS = {"mail": id_of_mail, "sms": _id_of_sms, "push": _id_of_push}
"""Readers of the message's id in an accepted request, by channel."""


def _of_inbox(entry: Item) -> Acceptance:
    key = READERS[entry["channel"]](entry), entry["channel"]
    seconds = datetime.fromisoformat(entry["received_at"]).timestamp()
    return Acceptance(key, seconds, entry.get("to", ""), entry, entry.get("provider_id"))


def _of_fax(fax: Item) -> Acceptance:
    """A fax's document has the message's id as its name."""
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
    """Base64url of the id; a further attempt's has its number after a dot."""
    coded = reference.partition(".")[0]
    try:
        return base64.urlsafe_b64decode(coded + "=" * (-len(coded) % 4)).decode() or UNKNOWN
    except ValueError:
        return UNKNOWN
