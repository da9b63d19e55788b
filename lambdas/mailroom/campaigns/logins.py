"""How to reach a database: its secret, in the form that RDS writes, and what the stage's settings add."""

import ssl
import time
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta, Struct

from mailroom.aws.secret import Secret
from mailroom.environment import Database

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


class Logins:
    """The login of one database, as its secret has it; what that lacks is the settings'."""

    def __init__(self, name: str, database: Database, secrets: "SecretsManagerClient") -> None:
        self._name = name
        self._database = database
        self._secrets = secrets

    def read(self) -> Login:
        """The login as it is now: a password that was rotated must not wait for a kept one to age. Raises
        botocore's errors, and LookupError that names the field at fault."""
        text = Secret(self._secrets, self._database.secret_arn, time.time).current().text
        try:
            found = msgspec.json.decode(text)
            if isinstance(found, dict):
                found = {**self._told(), **found}
            return msgspec.convert(found, Login, strict=False)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise LookupError(
                f"the secret of database {self._name!r} is not a login: {error}; it needs host, port, "
                "username, password and dbname, as RDS writes them, or the settings have what it lacks"
            ) from None

    def _told(self) -> dict[str, Any]:
        """What the stage's settings say: a secret that RDS itself manages holds the username and the password
        alone."""
        told = {name: getattr(self._database, name) for name in ("host", "port", "dbname")}
        return {name: value for name, value in told.items() if value}

    def parameters(self, login: Login) -> dict[str, Any]:
        """What libpq is told."""
        database = self._database
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
        if not self._database.sslmode.startswith("verify"):
            return {}
        file = self._database.ca_file or ssl.get_default_verify_paths().cafile
        return {"sslrootcert": file or "system"}
