"""A small pool of connections to one database. Only who has a database pays for loading psycopg."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from psycopg import Connection, OperationalError
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool, PoolTimeout

from mailroom.campaigns.databases import Unreachable
from mailroom.campaigns.logins import Logins
from mailroom.environment import Database

PATIENCE_SECONDS = 2.0
"""Beyond what two tries to connect may take."""

_Open = Callable[[dict[str, Any]], Connection[Any]]
"""Opens a connection to where libpq is told."""


class Pool:
    """One database's connections, and why it last got no connection."""

    def __init__(self, name: str, database: Database, logins: Logins) -> None:
        self._name = name
        self._logins = logins
        self._login = logins.read()
        self._trouble: Exception | None = None
        self._seconds = 2 * database.connect_seconds + PATIENCE_SECONDS
        self._pool: ConnectionPool[Connection[Any]] = ConnectionPool(
            connection_class=_class(self._connect),
            # Not prepared: behind a proxy the next statement may meet another server process.
            kwargs={"prepare_threshold": None},
            min_size=0,
            max_size=database.pool_size,
            configure=_limiting(round(database.statement_seconds * 1000)),
            open=True,
            name=name,
            # A function is frozen between invocations, and a connection may have died meanwhile.
            check=ConnectionPool.check_connection,
            timeout=self._seconds,
            reconnect_timeout=self._seconds,
            num_workers=1,
        )

    @contextmanager
    def connection(self) -> Iterator[Connection[Any]]:
        self._trouble = None
        try:
            connection = self._pool.getconn()
        except PoolTimeout:
            why = self._trouble or "all are in use"
            raise Unreachable(
                f"database {self._name!r} gave no connection within {self._seconds:g} s: {why}"
            ) from None
        try:
            with connection:
                yield connection
        finally:
            # Not as the pool's own `reset`: that runs later, and not at all where the pool is closed by then,
            # which leaves the connection open.
            _reset(connection)
            self._pool.putconn(connection)

    def close(self) -> None:
        self._pool.close()

    def _connect(self, opened: _Open) -> Connection[Any]:
        """A new connection. One that is refused is tried once more where the secret has changed since."""
        try:
            return self._known_or_new(opened)
        except Exception as error:
            self._trouble = error
            raise

    def _known_or_new(self, opened: _Open) -> Connection[Any]:
        try:
            return opened(self._logins.parameters(self._login))
        except OperationalError:
            # libpq tells a refused password from other trouble only in words, in the server's language.
            login = self._logins.read()
            if login == self._login:
                raise
        self._login = login
        return opened(self._logins.parameters(login))


def _limiting(milliseconds: int) -> Callable[[Connection[Any]], None]:
    def configure(connection: Connection[Any]) -> None:
        """Not by an option of the start-up packet: RDS Proxy refuses a connection that has any."""
        connection.autocommit = True
        connection.execute("SELECT set_config('statement_timeout', %s, false)", [str(milliseconds)])
        connection.autocommit = False

    return configure


def _reset(connection: Connection[Any]) -> None:
    """What one user has set must not bind the next. The pool itself does away with what is broken."""
    if connection.info.transaction_status == TransactionStatus.IDLE:
        connection.read_only = None
        connection.isolation_level = None
        connection.autocommit = False


def _class(connect: Callable[[_Open], Connection[Any]]) -> Any:
    """A pool asks a class for its connections; this one asks for where to, each time."""

    class Connecting(Connection[Any]):
        @classmethod
        def connect(cls, conninfo: str = "", **settings: Any) -> Any:
            return connect(lambda where: super(Connecting, cls).connect(conninfo, **settings, **where))

    return Connecting
