"""A real server for all of these tests, with a new database for each."""

from collections.abc import Callable, Iterator

import psycopg
import pytest
from psycopg import Connection

from mailroom.campaigns.databases import Databases
from mailroom_local.database import postgres
from mailroom_local.database.postgres import Postgres
from tests.support.postgres.vault import Vault, database_settings

_PAST = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'mailroom'
"""
Make = Callable[..., Databases]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    """A server that is up."""
    with postgres.serving(tmp_path_factory.mktemp("postgres") / "server") as running:
        yield running


@pytest.fixture
def vault(server: Postgres) -> Vault:
    """The secret of the server's database, which is empty."""
    with server.connect() as connection:
        # A separate database for each test would take a hundred times as long.
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
        # A connection that was closed is the server's for a moment longer.
        connection.execute(_PAST)
    return Vault(**server.secret)


@pytest.fixture
def make(vault: Vault) -> Make:
    """Databases with one named app, with changes to its settings."""

    def one(**changes: object) -> Databases:
        return Databases({"app": database_settings(**changes)}, vault)  # type: ignore[arg-type]

    return one


@pytest.fixture
def databases(make: Make) -> Databases:
    """Databases with one named app."""
    return make()


@pytest.fixture
def app(vault: Vault) -> Iterator[Connection]:
    """A connection of the application's own; it commits by itself."""
    where = {name: vault.secret[name] for name in ("host", "port", "dbname", "password")}
    with psycopg.connect(user=vault.secret["username"], autocommit=True, **where) as connection:
        yield connection
