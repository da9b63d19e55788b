"""HTTP to a provider: every request goes out once, in bounded time, and its failures say what they prove."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

from requests import PreparedRequest, Response, Session
from requests.adapters import HTTPAdapter
from requests.exceptions import ConnectTimeout, RequestException
from urllib3 import Timeout
from urllib3.exceptions import HTTPError, MaxRetryError, NewConnectionError, ReadTimeoutError

CONNECT_SECONDS = 3.0
MAX_BODY_BYTES = 4 * 1024 * 1024
_CHUNK_BYTES = 65_536

# It warns, and at DEBUG tells each request, with the whole URL: numbers stand in the query.
logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)


class NotSent(Exception):
    """No connection was made, so nothing went out."""


class Unclear(Exception):
    """No answer, or none that can be understood: what the request did, nobody knows."""


class OnceSession(Session):
    """A session that repeats nothing, follows nothing and takes at most `seconds` for a request, up to the
    end of its answer's body; only an answer whose head comes in drops could take longer."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._seconds = seconds
        self._clock = clock
        # No proxy, and no credentials of a .netrc, which would replace a Bearer key.
        self.trust_env = False
        # A function that was frozen wakes with connections that the other side has long forgotten. Each of
        # them would cost an unknown outcome, so none is kept; beside a fax's minutes a handshake is nothing.
        self.headers["Connection"] = "close"
        for scheme in ("http://", "https://"):
            self.mount(scheme, HTTPAdapter(max_retries=0))

    def send(self, request: PreparedRequest, **kwargs: Any) -> Response:
        """As in requests, save for the time. Raises NotSent or Unclear, without the URL in their text."""
        deadline = self._clock() + self._seconds
        connect = min(CONNECT_SECONDS, self._seconds)
        kwargs |= {
            "timeout": Timeout(connect=connect, total=self._seconds),
            "stream": True,
            "allow_redirects": False,
        }
        with _proof():
            try:
                response = super().send(request, **kwargs)
                with closing(response):
                    response._content = self._body(response, deadline)
            finally:
                # A server may close without saying so, and then a next request might still go out on it.
                self.close()
        response.encoding = response.encoding or "utf-8"  # JSON; guessing takes longer than reading
        return response

    def _body(self, response: Response, deadline: float) -> bytes:
        body = b""
        while chunk := self._chunk(response, deadline):
            body += chunk
            if len(body) > MAX_BODY_BYTES:
                raise Unclear(f"an answer ({response.status_code}) of over {MAX_BODY_BYTES} bytes")
        return body

    def _chunk(self, response: Response, deadline: float) -> bytes:
        left = deadline - self._clock()
        if left <= 0:
            raise self._late(response)
        connection = response.raw.connection
        if connection is not None and connection.sock is not None:  # else all of it was read with the head
            connection.sock.settimeout(left)
        try:
            chunk: bytes = response.raw.read1(_CHUNK_BYTES, decode_content=True)
        except ReadTimeoutError:
            raise self._late(response) from None
        return chunk

    def _late(self, response: Response) -> Unclear:
        return Unclear(f"an answer ({response.status_code}) that did not end in {self._seconds} s")


@contextmanager
def _proof() -> Iterator[None]:
    # `from None`: the causes' texts hold the URL, and a log has no use for it.
    try:
        yield
    except (RequestException, HTTPError) as error:
        if _nothing_went_out(error):
            raise NotSent(f"no connection: {_kind(error)}") from None
        raise Unclear(f"no answer: {_kind(error)}") from None


def _nothing_went_out(error: Exception) -> bool:
    if isinstance(error, ConnectTimeout):
        return True
    cause = error.args[0] if error.args else None
    return isinstance(cause, MaxRetryError) and isinstance(cause.reason, NewConnectionError)


def _kind(error: Exception) -> str:
    cause = error.args[0] if error.args else None
    reason = cause.reason if isinstance(cause, MaxRetryError) else cause
    return type(reason if isinstance(reason, Exception) else error).__name__
