"""What the simulated providers of SMS and pushes accepted, by the message that it was sent for."""

import base64
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from local.demo.scenarios.pushes import MARK

Entry = Mapping[str, Any]
"""One line of the inbox."""
UNKNOWN = "something that names no message"


def by_message(inbox: Iterable[Entry]) -> dict[str, list[Entry]]:
    """The inbox's SMS and pushes by the id that they carry."""
    found: dict[str, list[Entry]] = defaultdict(list)
    for each in inbox:
        if each["channel"] == "sms":
            found[_of_callback(each["content"]["callback"])].append(each)
        elif each["channel"] == "push":
            found[_of_payload(each["content"]["payloads"])].append(each)
    return dict(found)


def of_mail(mail: Entry) -> str:
    """The id that a mail was sent for, by its header."""
    return _decoded(mail["content"]["headers"].get("X-Correlation-ID", ""))


def _of_callback(url: str) -> str:
    return _decoded(url.rpartition("/")[2])


def _decoded(reference: str) -> str:
    """Base64url of the id; a further attempt's has its number after a dot."""
    coded = reference.partition(".")[0]
    try:
        return base64.urlsafe_b64decode(coded + "=" * (-len(coded) % 4)).decode() or UNKNOWN
    except ValueError:
        return UNKNOWN


def _of_payload(payloads: Mapping[str, Any]) -> str:
    mark = re.search(rf'"{MARK}": "([^"]+)"', json.dumps(payloads))
    return mark[1] if mark else UNKNOWN
