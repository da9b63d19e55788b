"""REST API of Twilio, and of SignalWire for faxes, whose API has the same format.

Without Twilio's package, which would add a transport and a few headers to what `ProviderApi` does, and 23 MB.
"""

from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

from mailroom.errors import OutcomeUnknown
from mailroom.http.https import Answer
from mailroom.http.provider import ProviderApi, body_of

_PAGE_SIZE = 1000  # entries in a page: Twilio's maximum
_MAX_PAGES = 5
_FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def api_of(login: tuple[str, str], seconds: float) -> ProviderApi:
    """Return the API for a user and password. A request takes at most `seconds`."""
    return ProviderApi(seconds, {"Authorization": f"Basic {b64encode(':'.join(login).encode()).decode()}"})


class TwilioApi:
    """Client of the REST API of Twilio, or of a provider whose API has the same format, with one account."""

    def __init__(
        self,
        login: tuple[str, str],
        *,
        base_url: str,
        seconds: float,
        reason: Callable[[int, str], str],
    ) -> None:
        """Create the client. `seconds` is the longest duration of one request. `reason`: function that
        returns a sentence for the status and the text of an error response."""
        self._api = api_of(login, seconds)
        self._base = base_url.rstrip("/")
        self._reason = reason

    def post(self, path: str, fields: Mapping[str, object]) -> Answer:
        """Make a POST request, and return the response, which may have any status. Raises RequestFailed."""
        body = urlencode(fields, doseq=True).encode()
        return self._api.request("POST", self._base + path, headers=_FORM, body=body)

    def get(self, path: str, params: Mapping[str, object] | None = None) -> dict[str, Any]:
        """Make a GET request, and return the JSON object in the response. Raises RequestFailed, also if the
        status is not 200."""
        response = self._api.get(self._base + path, params)
        if response.status != 200:
            raise OutcomeUnknown(self._reason(response.status, response.text))
        return body_of(response.status, response.text)

    def pages(self, path: str, params: Mapping[str, object], name: str) -> Iterator[list[dict[str, Any]]]:
        """Yield the entries of a list, page by page. A page is requested only when the caller needs it. The
        entries are in the page's field `name`. Raises RequestFailed, also for a page without the field, or
        for a list of too many pages."""
        page = self.get(path, {**params, "PageSize": _PAGE_SIZE})
        for number in range(1, _MAX_PAGES + 1):
            entries = page.get(name)
            if not isinstance(entries, list):
                raise OutcomeUnknown(f"a list without {name}")
            yield entries
            next_uri = page.get("next_page_uri")
            if not next_uri:
                return
            if number < _MAX_PAGES:
                page = self.get(self._path_of(str(next_uri)))
        raise OutcomeUnknown(f"a list of {name} of more than {_MAX_PAGES} pages")

    def _path_of(self, uri: str) -> str:
        """Return the path of the next page's URI. Raises OutcomeUnknown if the URI is on another host, which
        must not receive the credentials."""
        path = uri.removeprefix(self._base)
        if not path.startswith("/"):
            raise OutcomeUnknown("a next page on another host")
        return path
