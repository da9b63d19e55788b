"""Twilio's client as it is used here: for its text messages, and for SignalWire's faxes, spoken alike."""

import logging
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

from twilio.http import HttpClient
from twilio.http.response import Response
from twilio.rest import Client

from mailroom.http.https import Unclear
from mailroom.http.provider import ProviderApi, body_of

_PAGE_SIZE = 1000  # the most there is
_MAX_PAGES = 5

# An empty one would be replaced by the process's own, whose TWILIO_REGION and TWILIO_EDGE rewrite any host.
_ENVIRONMENT = {"TWILIO_REGION": "", "TWILIO_EDGE": ""}


def client(user: str, password: str, account: str, seconds: float) -> Client:
    """A client that asks once, in `seconds` at most, and logs nothing."""
    http = _Http(seconds)
    return Client(user, password, account_sid=account, http_client=http, environment=dict(_ENVIRONMENT))


class _Http(HttpClient):  # type: ignore[misc] # the package has no types
    """Sends the client's requests like those to any provider, and logs none: their URLs hold numbers."""

    def __init__(self, seconds: float) -> None:
        super().__init__(logging.getLogger(__name__), is_async=False)
        self._api = ProviderApi(seconds)

    def request(
        self,
        method: str,
        uri: str,
        params: dict[str, object] | None = None,
        data: dict[str, object] | None = None,
        headers: dict[str, str] | None = None,
        auth: tuple[str, str] | None = None,
        **_unused: Any,
    ) -> Response:
        """The answer. Raises NotSent or Unclear."""
        sent = dict(headers or {})
        if auth is not None:
            sent["Authorization"] = "Basic " + b64encode(":".join(auth).encode()).decode()
        body = urlencode(data or {}, doseq=True).encode()
        answer = self._api.request(method, uri, params=params, headers=sent, body=body)
        return Response(answer.status, answer.text, answer.headers)


class TwilioApi:
    """The REST API of Twilio, or of who has its shape, under one account."""

    def __init__(
        self,
        login: tuple[str, str],
        account: str,
        *,
        base_url: str,
        seconds: float,
        reason: Callable[[int, str], str],
    ) -> None:
        """`seconds` is the longest that one request may take; `reason` makes a sentence of a status and the
        text of a refusal."""
        self._client = client(*login, account, seconds)
        self._base = base_url.rstrip("/")
        self._reason = reason

    def post(self, path: str, fields: Mapping[str, object]) -> Response:
        """The answer, whatever its status. Raises NotSent or Unclear."""
        return self._client.request("POST", self._base + path, data=dict(fields))

    def get(self, path: str, params: Mapping[str, object] | None = None) -> dict[str, Any]:
        """The JSON object that a 200 comes with. Raises NotSent, or Unclear for anything else."""
        answer = self._client.request("GET", self._base + path, params=params)
        if answer.status_code != 200:
            raise Unclear(self._reason(answer.status_code, answer.text))
        return body_of(answer.status_code, answer.text)

    def pages(self, path: str, params: Mapping[str, object], name: str) -> Iterator[list[dict[str, Any]]]:
        """The pages of a list, whose entries stand under `name`; each is asked for when it is wanted. Raises
        Unclear for what is not a list, or is too long."""
        page = self.get(path, {**params, "PageSize": _PAGE_SIZE})
        for number in range(1, _MAX_PAGES + 1):
            entries = page.get(name)
            if not isinstance(entries, list):
                raise Unclear(f"a list without {name}")
            yield entries
            following = page.get("next_page_uri")
            if not following:
                return
            if number < _MAX_PAGES:
                page = self.get(self._path_of(str(following)))
        raise Unclear(f"a list of {name} of more than {_MAX_PAGES} pages")

    def _path_of(self, uri: str) -> str:
        """A page's path, at our own base: no other host may see the credentials. Raises Unclear."""
        path = uri.removeprefix(self._base)
        if not path.startswith("/"):
            raise Unclear("a next page on another host")
        return path
