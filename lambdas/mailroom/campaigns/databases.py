"""Connections to the databases that a stage's settings name: a small pool of each for a process's life.

Only a process that has a database imports this module: psycopg takes longer to load than all of Mailroom. A
database sees concurrency x pool size connections, which synth has checked against what the database allows.
So a pool never grows beyond its size, and opens no connection before one is asked for.
"""

import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta, Struct
from psycopg import Connection, OperationalError
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool, PoolTimeout

from mailroom.aws.secret import CachedSecret
from mailroom.environment import DatabaseSettings
from mailroom.errors import ConnectError

if TYPE_CHECKING:
    from types_boto3_secretsmanager import SecretsManagerClient

APPLICATION = "mailroom"
"""What the server's own lists of connections show."""

_Text = Annotated[str, Meta(min_length=1)]


class Login(Struct, frozen=True):
    """Who connects, and where to. Never log it."""

    host: _Text
    username: _Text
    password: _Text
    dbname: _Text
    port: Annotated[int, Meta(ge=1, le=65535)] = 5432

    def __repr__(self) -> str:
        return "Login(…)"


class Logins(Struct, frozen=True):
    """The login of one database, as its secret has it; what that lacks is the settings'."""

    name: str
    database: DatabaseSettings
    secrets: "SecretsManagerClient"

    def read(self) -> Login:
        """The login as it is now: a password that was rotated must not wait for a kept one to age. Raises
        botocore's errors, and LookupError that names the field at fault."""
        text = CachedSecret(self.secrets, self.database.secret_arn, time.time).current().text
        try:
            found = msgspec.json.decode(text)
            if isinstance(found, dict):
                # A secret that RDS itself manages holds the username and the password only.
                settings = {name: getattr(self.database, name) for name in ("host", "port", "dbname")}
                found = {**{name: value for name, value in settings.items() if value}, **found}
            return msgspec.convert(found, Login, strict=False)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise LookupError(
                f"the secret of database {self.name!r} is not a login: {error}; it needs host, port, "
                "username, password and dbname, as RDS writes them, or the settings have what it lacks"
            ) from None

    def parameters(self, login: Login) -> dict[str, Any]:
        """The parameters of a connection, by libpq's names."""
        database = self.database
        return {
            "host": login.host,
            "port": login.port,
            "user": login.username,
            "password": login.password,
            "dbname": login.dbname,
            "connect_timeout": max(1, round(database.connect_seconds)),
            # In milliseconds: a server that is gone without a word is not waited for either.
            "tcp_user_timeout": round(database.connect_seconds * 1000),
            "application_name": APPLICATION,
            "sslmode": database.sslmode,
            **self._trusted(),
        }

    def _trusted(self) -> dict[str, str]:
        """The certificates that the server's must be signed by. The libpq that psycopg brings looks for the
        system's where its builder had them; Python knows where they are."""
        if not self.database.sslmode.startswith("verify"):
            return {}
        file = self.database.ca_file or ssl.get_default_verify_paths().cafile
        return {"sslrootcert": file or "system"}


MARGIN_SECONDS = 2.0
"""Time beyond what two tries to connect may take."""

_Open = Callable[[dict[str, Any]], Connection[Any]]
"""Opens a connection with these parameters."""


class Pool:
    """One database's connections, and why it last got no connection."""

    def __init__(self, name: str, database: DatabaseSettings, logins: Logins) -> None:
        self._name = name
        self._logins = logins
        self._login = logins.read()
        self._trouble: Exception | None = None
        self._seconds = 2 * database.connect_seconds + MARGIN_SECONDS
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
            raise ConnectError(
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
            try:
                return opened(self._logins.parameters(self._login))
            except OperationalError:
                # libpq reports a refused password in words only, in the server's language.
                login = self._logins.read()
                if login == self._login:
                    raise
            self._login = login
            return opened(self._logins.parameters(login))
        except Exception as error:
            self._trouble = error
            raise


def _limiting(milliseconds: int) -> Callable[[Connection[Any]], None]:
    def configure(connection: Connection[Any]) -> None:
        """Set the limits by statements: RDS Proxy refuses a connection with options in its start-up
        packet."""
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


class Databases:
    """Connections by the database's name. A process has one of these."""

    def __init__(self, settings: Mapping[str, DatabaseSettings], secrets: "SecretsManagerClient") -> None:
        self._settings = settings
        self._secrets = secrets
        self._open: dict[str, Pool] = {}
        self._lock = Lock()

    def connection(self, name: str) -> AbstractContextManager[Connection[Any]]:
        """A connection of the pool: checked before it is handed out, committed at the context's end, rolled
        back where that ends by an error.

        Raises LookupError for a name that the settings lack or a secret that is no login, ConnectError, and
        botocore's errors where the secret cannot be read.
        """
        return self._pool(name).connection()

    def close(self) -> None:
        """End all connections. A later one opens its pool anew."""
        while self._open:
            self._open.popitem()[1].close()

    def _pool(self, name: str) -> Pool:
        with self._lock:  # two pools of one database would hold twice what it allows
            if name not in self._open:
                if name not in self._settings:
                    known = ", ".join(sorted(self._settings)) or "none"
                    raise LookupError(
                        f"no database {name!r}: the settings have {known}; add it under databases"
                    )
                database = self._settings[name]
                self._open[name] = Pool(name, database, Logins(name, database, self._secrets))
            return self._open[name]
