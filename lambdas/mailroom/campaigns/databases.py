"""The databases that a stage's settings name: a small pool of connections each, for a process's life.

How many connections a database sees is concurrency x pool size, which synth has checked against what the
database allows. So a pool never grows beyond its size, and opens no connection before one is asked for.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any

from mailroom.campaigns.logins import Logins
from mailroom.environment import Database

if TYPE_CHECKING:
    from psycopg import Connection
    from types_boto3_secretsmanager import SecretsManagerClient

    from mailroom.campaigns.pools import Pool


class Unreachable(ConnectionError):
    """A database gave no connection in time."""


class Databases:
    """Connections by the database's name. A process has one of these."""

    def __init__(self, settings: Mapping[str, Database], secrets: "SecretsManagerClient") -> None:
        self._settings = settings
        self._secrets = secrets
        self._open: dict[str, Pool] = {}
        self._lock = Lock()
        if settings:
            # At the process's start, where time is cheap; without a database it would be spent for nothing.
            import mailroom.campaigns.pools  # noqa: F401

    @contextmanager
    def connection(self, name: str) -> "Iterator[Connection[Any]]":
        """A connection of the pool: checked before it is handed out, committed at the context's end, rolled
        back where that ends by an error.

        Raises LookupError for a name that the settings lack or a secret that is no login, Unreachable, and
        botocore's errors where the secret cannot be read.
        """
        with self._reached(name).connection() as connection:
            yield connection

    def close(self) -> None:
        """End all connections. A later one opens its pool anew."""
        while self._open:
            self._open.popitem()[1].close()

    def _reached(self, name: str) -> "Pool":
        with self._lock:  # two pools of one database would hold twice what it allows
            if name not in self._open:
                self._open[name] = self._reach(name)
            return self._open[name]

    def _reach(self, name: str) -> "Pool":
        if name not in self._settings:
            known = ", ".join(sorted(self._settings)) or "none"
            raise LookupError(f"no database {name!r}: the settings have {known}; add it under databases")
        database = self._settings[name]
        from mailroom.campaigns.pools import Pool

        return Pool(name, database, Logins(name, database, self._secrets))
