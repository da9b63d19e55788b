"""Twilio's client as it is used here, also for SignalWire, whose API has Twilio's shape."""

import logging
from base64 import b64encode
from typing import Any
from urllib.parse import urlencode

from twilio.http import HttpClient
from twilio.http.response import Response
from twilio.rest import Client

from mailroom.http.https import Unclear
from mailroom.http.provider import ProviderApi

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


def next_page(base: str, uri: str) -> str:
    """Where a list's next page is: at the same host, `base`, which alone may see the credentials. Raises
    Unclear for any other."""
    if uri.startswith("/"):
        return base + uri
    if uri.startswith(f"{base}/"):
        return uri
    raise Unclear("a next page on another host")
