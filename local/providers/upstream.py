"""Requests handed on to the emulator over a pool of connections that stay open."""

import queue
from http.client import HTTPConnection, HTTPException, HTTPResponse
from urllib.parse import urlsplit

from local.providers.http import Reply, Request

# Belong to one connection, or are set anew by the client or the server of the next one.
HOP_BY_HOP = {
    *("connection", "keep-alive", "transfer-encoding", "content-length", "host", "date", "server"),
    *("origin", "sec-fetch-site"),  # whose page asks is about the server that was asked, which has looked
}
TIMEOUT_SECONDS = 60.0


class Upstream:
    """The emulator, as seen from a simulator in front of it."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 80
        self._idle: queue.LifoQueue[HTTPConnection] = queue.LifoQueue()

    def pass_on(self, request: Request) -> Reply:
        """Send the request as it came and return the answer as it came."""
        connection = self._take()
        try:
            response = self._exchange(connection, request)
            reply = Reply(response.status, response.read(), _end_to_end(response))
        except BaseException:
            connection.close()
            raise
        self._idle.put(connection)
        return reply

    def close(self) -> None:
        """Close the idle connections."""
        while not self._idle.empty():
            self._idle.get().close()

    def _take(self) -> HTTPConnection:
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            return HTTPConnection(self._host, self._port, timeout=TIMEOUT_SECONDS)

    def _exchange(self, connection: HTTPConnection, request: Request) -> HTTPResponse:
        try:
            return _send(connection, request)
        except (HTTPException, ConnectionError):
            # The emulator closes idle connections. What it records twice for that counts for nothing:
            # the simulator's own inbox is what says which mail was sent.
            connection.close()
            return _send(connection, request)


def _send(connection: HTTPConnection, request: Request) -> HTTPResponse:
    headers = {name: value for name, value in request.headers.items() if name not in HOP_BY_HOP}
    connection.request(request.method, request.path, body=request.body or None, headers=headers)
    return connection.getresponse()


def _end_to_end(response: HTTPResponse) -> dict[str, str]:
    return {name: value for name, value in response.getheaders() if name.lower() not in HOP_BY_HOP}
