"""Connections to the databases in a stage's settings. A connection is opened for one page or one chunk, which
takes about 30 ms.

A reused connection would have to be tested, because a function is frozen between invocations, and the
connection's session settings would have to be reset.

Only a function with databases imports this module, because psycopg takes longer to load than all of Mailroom.
Each running function has at most one connection to a database at a time, so the database's connection limit
must allow for the concurrency of `collect` and `compose`.
"""

import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta, Struct
from psycopg import Connection, OperationalError

from mailroom.aws.secret import CachedSecret
from mailroom.environment import DatabaseSettings
from mailroom.errors import ConnectError

if TYPE_CHECKING:
    from types_boto3_secretsmanager import SecretsManagerClient

APPLICATION = "mailroom"
"""Value of `application_name`, by which the server lists the connections."""

_Text = Annotated[str, Meta(min_length=1)]


class Login(Struct, frozen=True):
    """User, password and address of a database, which must never be logged."""

    host: _Text
    username: _Text
    password: _Text
    dbname: _Text
    port: Annotated[int, Meta(ge=1, le=65535)] = 5432

    def __repr__(self) -> str:
        return "Login(…)"


def login_of(name: str, database: DatabaseSettings, secrets: "SecretsManagerClient") -> Login:
    """Return the current login of a database, from its secret, and from the settings if the secret lacks a
    field. Raises botocore's errors, and LookupError with the missing or invalid field."""
    text = CachedSecret(secrets, database.secret_arn, time.time).current().text
    try:
        login = msgspec.json.decode(text)
        if isinstance(login, dict):
            # A secret that RDS manages holds only the username and the password, so the rest comes from the
            # settings.
            settings = {field: getattr(database, field) for field in ("host", "port", "dbname")}
            login = {**{field: value for field, value in settings.items() if value}, **login}
        return msgspec.convert(login, Login, strict=False)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise LookupError(
            f"the secret of database {name!r} is not a login: {error}; the secret and the "
            "settings together need host, port, username, password and dbname, as in a secret of RDS"
        ) from None


def parameters_of(database: DatabaseSettings, login: Login) -> dict[str, Any]:
    """Return the parameters of a connection, by the names of libpq."""
    parameters = {
        "host": login.host,
        "port": login.port,
        "user": login.username,
        "password": login.password,
        "dbname": login.dbname,
        "connect_timeout": max(1, round(database.connect_seconds)),
        # Time-out in milliseconds for a server that stops responding after the connection is open.
        "tcp_user_timeout": round(database.connect_seconds * 1000),
        "application_name": APPLICATION,
        "sslmode": database.sslmode,
    }
    if database.sslmode.startswith("verify"):
        # The libpq in psycopg looks for the certificate authorities at a path of the machine that built it,
        # so it gets the path on this machine, which Python knows.
        authorities = database.ca_file or ssl.get_default_verify_paths().cafile
        parameters["sslrootcert"] = authorities or "system"
    return parameters


class Databases:
    """Opens connections to databases by name."""

    def __init__(self, settings: Mapping[str, DatabaseSettings], secrets: "SecretsManagerClient") -> None:
        self._settings = settings
        self._secrets = secrets

    @contextmanager
    def connection(self, name: str) -> Iterator[Connection[Any]]:
        """Open a connection. At the end of the context it is committed and closed; after an error it is
        rolled back and closed.

        Raises LookupError for an unknown name or a secret that is not a login, ConnectError, and botocore's
        errors if the secret cannot be read.
        """
        if name not in self._settings:
            names = ", ".join(sorted(self._settings)) or "none"
            raise LookupError(f"no database {name!r}; the settings have {names}: add it under databases")
        try:
            # The login is read for each connection, so that a rotated password takes effect at once.
            database = self._settings[name]
            connection = _connect(database, login_of(name, database, self._secrets))
        except OperationalError as error:
            raise ConnectError(f"the connection to database {name!r} failed: {error}") from None
        with connection:
            yield connection


def _connect(database: DatabaseSettings, login: Login) -> Connection[Any]:
    parameters = parameters_of(database, login)
    # Prepared statements are off, because behind a proxy the next statement may reach another server process.
    connection = Connection.connect(autocommit=True, prepare_threshold=None, **parameters)
    # The time limit is set by a statement, because RDS Proxy refuses a connection with options in its
    # start-up packet.
    milliseconds = str(round(database.statement_seconds * 1000))
    connection.execute("SELECT set_config('statement_timeout', %s, false)", [milliseconds])
    connection.autocommit = False
    return connection
