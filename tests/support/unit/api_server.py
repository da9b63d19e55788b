"""The API behind WSGI, so that tools which speak HTTP can ask it."""

from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any

from tests.support.api_description import FILE
from tests.support.unit.api_requests import Api, event

DESCRIPTION = "/openapi.json"
Start = Callable[[str, list[tuple[str, str]]], Any]


class Server:
    """A WSGI application; each request is one event of an HTTP API, but that for the API's description."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def __call__(self, environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        if environ["PATH_INFO"] == DESCRIPTION:
            start("200 OK", [("Content-Type", "application/json")])
            return [FILE.read_bytes()]
        answer = self._api.ask(_event(environ))
        headers = [(name.title(), value) for name, value in answer.headers.items()]
        start(f"{answer.status} {HTTPStatus(answer.status).phrase}", headers)
        return [answer.text.encode()]


def _event(environ: dict[str, Any]) -> dict[str, Any]:
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    headers = {
        name[5:].replace("_", "-"): value for name, value in environ.items() if name.startswith("HTTP_")
    }
    headers["content-type"] = environ.get("CONTENT_TYPE", "")
    return event(environ["REQUEST_METHOD"], environ["REQUEST_URI"], body or None, headers)
