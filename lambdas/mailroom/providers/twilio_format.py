"""Twilio's client, for text messages by Twilio and for faxes by SignalWire, whose API has the same format."""

import logging
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

from twilio.http import HttpClient
from twilio.http.response import Response
from twilio.rest import Client

from mailroom.errors import OutcomeUnknown
from mailroom.http.provider_api import ProviderApi, body_of

_PAGE_SIZE = 1000  # entries in a page: Twilio's maximum
_MAX_PAGES = 5

# Environment for Twilio's client. With an empty dict, the client would read the process's environment, whose
# TWILIO_REGION and TWILIO_EDGE would change the host of every URL.
_ENVIRONMENT = {"TWILIO_REGION": "", "TWILIO_EDGE": ""}


def client(user: str, password: str, account: str, seconds: float) -> Client:
    """Return a client that never retries a request, gives up after `seconds`, and does not log requests."""
    http = _Http(seconds)
    return Client(user, password, account_sid=account, http_client=http, environment=dict(_ENVIRONMENT))


class _Http(HttpClient):  # type: ignore[misc] # the package has no types
    """HTTP transport for Twilio's client. Requests are not logged, because their URLs contain phone
    numbers."""

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
        """Make the request, and return the response. Raises RequestFailed."""
        all_headers = dict(headers or {})
        if auth is not None:
            all_headers["Authorization"] = "Basic " + b64encode(":".join(auth).encode()).decode()
        body = urlencode(data or {}, doseq=True).encode()
        answer = self._api.request(method, uri, params=params, headers=all_headers, body=body)
        return Response(answer.status, answer.text, answer.headers)


class TwilioApi:
    """Client of the REST API of Twilio, or of a provider whose API has the same format, with one account."""

    def __init__(
        self,
        login: tuple[str, str],
        account: str,
        *,
        base_url: str,
        seconds: float,
        reason: Callable[[int, str], str],
    ) -> None:
        """Create the client. `seconds` is the longest duration of one request. `reason`: function that
        returns a sentence for the status and the text of an error response."""
        self._client = client(*login, account, seconds)
        self._base = base_url.rstrip("/")
        self._reason = reason

    def post(self, path: str, fields: Mapping[str, object]) -> Response:
        """Make a POST request, and return the response, which may have any status. Raises RequestFailed."""
        return self._client.request("POST", self._base + path, data=dict(fields))

    def get(self, path: str, params: Mapping[str, object] | None = None) -> dict[str, Any]:
        """Make a GET request, and return the JSON object in the response. Raises RequestFailed, also if the
        status is not 200."""
        response = self._client.request("GET", self._base + path, params=params)
        if response.status_code != 200:
            raise OutcomeUnknown(self._reason(response.status_code, response.text))
        return body_of(response.status_code, response.text)

    def pages(self, path: str, params: Mapping[str, object], name: str) -> Iterator[list[dict[str, Any]]]:
        """Yield the entries of a list, page by page. A page is requested only when the caller needs it. The
        entries are in the page's field `name`. Raises RequestFailed, also for a page without the field, or
        for a list of too many pages."""
        page = self.get(path, {**params, "PageSize": _PAGE_SIZE})
        for number in range(1, _MAX_PAGES + 1):
            entries = page.get(name)
            if not isinstance(entries, list):
                raise OutcomeUnknown(f"the response has no list {name}")
            yield entries
            next_uri = page.get("next_page_uri")
            if not next_uri:
                return
            if number < _MAX_PAGES:
                page = self.get(self._path_of(str(next_uri)))
        raise OutcomeUnknown(f"the list of {name} has more than {_MAX_PAGES} pages")

    def _path_of(self, uri: str) -> str:
        """Return the path of the next page's URI. Raises OutcomeUnknown if the URI is on another host, which
        must not receive the credentials."""
        path = uri.removeprefix(self._base)
        if not path.startswith("/"):
            raise OutcomeUnknown("the URI of the next page is on another host")
        return path
