"""SES's suppression list of the account, which the emulator lacks: get, put, delete and list.

Hard bounces and complaints enter it, those of simulator addresses as well, which SES itself would leave out:
there would be no others here.
"""

import json
import threading
import time
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote, urlsplit

from local.providers.http import Reply, Request

PATH = "/v2/email/suppression/addresses"
REASONS = {"BOUNCE", "COMPLAINT"}


@dataclass(frozen=True)
class Suppressed:
    """An address on the list. `at` is in epoch seconds; an operator's own entry has no ids."""

    address: str
    reason: str
    at: float
    message_id: str = ""
    feedback_id: str = ""

    def summary(self) -> dict[str, Any]:
        return {"EmailAddress": self.address, "Reason": self.reason, "LastUpdateTime": self.at}

    def whole(self) -> dict[str, Any]:
        ids = {"MessageId": self.message_id, "FeedbackId": self.feedback_id}
        known = {name: value for name, value in ids.items() if value}
        return self.summary() | ({"Attributes": known} if known else {})


class SuppressionList:
    """Kept in memory; safe for many threads. The case of an address does not matter to it."""

    def __init__(self) -> None:
        self._listed: dict[str, Suppressed] = {}
        self._lock = threading.Lock()

    def add(self, suppressed: Suppressed) -> None:
        """Put it on the list, instead of an earlier entry."""
        with self._lock:
            self._listed[suppressed.address.lower()] = suppressed

    def __contains__(self, address: str) -> bool:
        return address.lower() in self._listed

    def handle(self, request: Request) -> Reply:
        """Answer as SES does; the request's path starts with PATH."""
        address = unquote(urlsplit(request.path).path.removeprefix(PATH).strip("/"))
        match request.method, address:
            case "PUT", "":
                return self._put(json.loads(request.body or b"{}"))
            case "GET", "":
                with self._lock:
                    every = [each.summary() for each in self._listed.values()]
                return _answer({"SuppressedDestinationSummaries": every})
            case "GET" | "DELETE", _:
                return self._one(request.method, address)
        return _error(HTTPStatus.NOT_FOUND, "NotFoundException", "There is no such operation.")

    def _put(self, entry: dict[str, Any]) -> Reply:
        address, reason = entry.get("EmailAddress", ""), entry.get("Reason", "")
        if "@" not in address or reason not in REASONS:
            return _error(
                HTTPStatus.BAD_REQUEST, "BadRequestException", "Email address or reason is not valid."
            )
        self.add(Suppressed(address, reason, time.time()))
        return _answer({})

    def _one(self, method: str, address: str) -> Reply:
        with self._lock:
            found = self._listed.get(address.lower())
            if found is not None and method == "DELETE":
                del self._listed[address.lower()]
        if found is None:
            message = f"Email address {address} does not exist on your suppression list."
            return _error(HTTPStatus.NOT_FOUND, "NotFoundException", message)
        return _answer({} if method == "DELETE" else {"SuppressedDestination": found.whole()})


def _answer(value: dict[str, Any]) -> Reply:
    return Reply(HTTPStatus.OK, json.dumps(value).encode(), {"Content-Type": "application/json"})


def _error(status: int, code: str, message: str) -> Reply:
    headers = {"Content-Type": "application/json", "x-amzn-ErrorType": code}
    return Reply(status, json.dumps({"message": message}).encode(), headers)
