"""TCP proxy in front of everything that a worker talks to. It numbers the worker's calls, and kills the
worker before or after one of them.

A call is the data that a worker sends to a server until the server responds. The proxy knows no protocol, so
that the same code stands before Redis, PostgreSQL, SES and AWS. A stop before a call is at its first byte,
which the server never gets. A stop after a call is at the first byte of the response, which the worker never
gets.
"""

import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from mailroom_local.processes import LOOPBACK

CHUNK = 65_536


@dataclass(eq=False)
class Connection:
    """Connection of the worker to a server."""

    worker: socket.socket
    server: socket.socket
    in_call: bool = False
    """Whether the server has not yet responded to the data that the worker sent last."""

    def close(self) -> None:
        for end in (self.worker, self.server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


class Proxy:
    """Listeners, one for each server. `ports` are the listeners' ports by the server's name."""

    def __init__(self, servers: Mapping[str, int]) -> None:
        self._lock = threading.RLock()
        self._connections: set[Connection] = set()
        self._stop: int | None = None
        self._kill: Callable[[], None] = lambda: None
        self.points = 0
        """Number of points since `arm` at which the worker can be stopped, two for each call."""
        self.stopped = False
        self._listeners = {name: socket.create_server((LOOPBACK, 0), backlog=64) for name in servers}
        self.ports = {name: int(listener.getsockname()[1]) for name, listener in self._listeners.items()}
        for name, listener in self._listeners.items():
            self._run(self._accept, listener, servers[name])

    def arm(self, stop: int | None, kill: Callable[[], None]) -> None:
        """Count points from 0. At the point `stop`, call `kill` and close all connections."""
        with self._lock:
            self.points, self._stop, self._kill, self.stopped = 0, stop, kill, False

    def close(self) -> None:
        for listener in self._listeners.values():
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self.disconnect()

    def disconnect(self) -> None:
        """Close all connections, as the system does for a process that died."""
        with self._lock:
            while self._connections:
                self._connections.pop().close()

    def _run(self, work: Callable[..., None], *arguments: object) -> None:
        threading.Thread(target=work, args=arguments, daemon=True).start()

    def _accept(self, listener: socket.socket, port: int) -> None:
        while True:
            try:
                worker, _ = listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection((LOOPBACK, port))
            except OSError:
                worker.close()
                continue
            for end in (worker, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = Connection(worker, server)
            with self._lock:
                self._connections.add(connection)
            self._run(self._forward, connection, True)
            self._run(self._forward, connection, False)

    def _forward(self, connection: Connection, to_server: bool) -> None:
        """Forward what one end sends to the other end, until the connection ends."""
        source, target = connection.worker, connection.server
        if not to_server:
            source, target = target, source
        with suppress(OSError):
            while data := source.recv(CHUNK):
                with self._lock:
                    if connection not in self._connections or self._stops_at(connection, to_server):
                        break
                    target.sendall(data)
        with self._lock:
            self._connections.discard(connection)
            connection.close()

    def _stops_at(self, connection: Connection, to_server: bool) -> bool:
        """Return whether the worker is stopped at this data. Data that neither begin nor end a call, such as
        a notice of PostgreSQL, are not a point."""
        if connection.in_call == to_server:
            return False
        connection.in_call = to_server
        point, self.points = self.points, self.points + 1
        if point != self._stop:
            return False
        self.stopped = True
        self._kill()
        self.disconnect()
        return True
