"""What the simulators tell of their own accord: counted, held back, and let go."""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from local.providers.delay_queue import Later
from local.providers.fax_wire import json_reply
from local.providers.http import Reply, Request


class FeedbackPages:
    """GET /events, POST /events/pause, POST /events/resume."""

    prefix = "/events"

    def __init__(self, laters: Mapping[str, Later[Any]], counts: Callable[[], dict[str, Any]]) -> None:
        """`laters` by the provider's name; `counts` of SES's events."""
        self._laters = laters
        self._counts = counts

    def handle(self, request: Request) -> Reply:
        match request.method, request.path.rstrip("/"):
            case "GET", "/events":
                return json_reply(HTTPStatus.OK, self._shown())
            case "POST", "/events/pause":
                for later in self._laters.values():
                    later.pause()
                return json_reply(HTTPStatus.OK, self._shown())
            case "POST", "/events/resume":
                for later in self._laters.values():
                    later.resume()
                return json_reply(HTTPStatus.OK, self._shown())
        hint = "Try GET /events, POST /events/pause, POST /events/resume."
        return json_reply(HTTPStatus.NOT_FOUND, {"message": hint})

    def _shown(self) -> dict[str, Any]:
        waiting = {name: later.waiting for name, later in self._laters.items()}
        paused = all(later.paused for later in self._laters.values())
        return {"paused": paused, "waiting": waiting, "ses": self._counts()}
