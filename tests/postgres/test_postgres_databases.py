"""Connections, each opened when somebody asks for it, also after the password was rotated."""

from collections.abc import Iterator
from contextlib import suppress

import psycopg
import pytest
from psycopg import Connection, sql

from mailroom.campaigns.databases import Databases
from mailroom.errors import ConnectError
from tests.postgres.conftest import Make
from tests.support.postgres.vault import Vault

HELD = """
SELECT count(*) FROM pg_stat_activity WHERE application_name = 'mailroom' AND datname = current_database()
"""


def one(databases: Databases, query: str = "SELECT 1") -> object:
    with databases.connection("app") as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return row[0]


def held_rows(app: Connection) -> int:
    row = app.execute(HELD).fetchone()
    assert row is not None
    return int(row[0])


def test_a_database_secret_is_read_and_a_connection_is_opened_only_when_a_connection_is_requested(
    databases: Databases, vault: Vault, app: Connection
) -> None:
    assert (vault.reads, held_rows(app)) == (0, 0)
    with databases.connection("app"):
        assert (vault.reads, held_rows(app)) == (1, 1)
    assert one(databases) == 1
    assert vault.reads == 2


@pytest.mark.parametrize("query", ["SELECT 1", "SELECT 1 / 0"])
def test_a_connection_is_closed_at_the_end_of_its_block_even_after_an_error(
    databases: Databases, app: Connection, query: str
) -> None:
    with suppress(psycopg.errors.DivisionByZero), databases.connection("app") as connection:
        pid = connection.info.backend_pid
        connection.execute(query)
    assert connection.closed
    app.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])  # waits for what the server ends by itself
    assert held_rows(app) == 0


def test_a_connection_commits_at_the_end_of_its_block_and_rolls_back_after_an_error(
    databases: Databases,
) -> None:
    with databases.connection("app") as connection:
        connection.execute("CREATE TABLE notes (text text)")
    with pytest.raises(psycopg.errors.DivisionByZero), databases.connection("app") as connection:
        connection.execute("INSERT INTO notes VALUES ('lost')").connection.execute("SELECT 1 / 0")
    with databases.connection("app") as connection:
        connection.execute("INSERT INTO notes VALUES ('kept')")
    assert one(databases, "SELECT string_agg(text, ',') FROM notes") == "kept"


def test_a_database_query_over_the_time_limit_is_cancelled_and_the_next_query_succeeds(make: Make) -> None:
    databases = make(statement_seconds=0.05)
    with pytest.raises(psycopg.errors.QueryCanceled):
        one(databases, "SELECT pg_sleep(20)")
    assert one(databases) == 1


def rotate(app: Connection, user: str, password: str) -> None:
    """A new password, and all who came in by the old one out."""
    app.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(user), sql.Literal(password)))
    app.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = %s", [user])


@pytest.fixture
def role(app: Connection, vault: Vault) -> Iterator[str]:
    """A user of the secret's own."""
    app.execute("CREATE ROLE reader LOGIN PASSWORD 'old'")
    vault.secret |= {"username": "reader", "password": "old"}
    yield "reader"
    app.execute("DROP ROLE reader")


def test_a_connection_uses_a_rotated_database_password_at_once(
    databases: Databases, vault: Vault, app: Connection, role: str
) -> None:
    assert one(databases) == 1
    rotate(app, role, "new")
    vault.secret["password"] = "new"
    assert one(databases) == 1
    assert vault.reads == 2


def test_the_error_about_a_refused_database_login_has_the_servers_message_and_not_the_password(
    databases: Databases, vault: Vault
) -> None:
    vault.secret["password"] = "wrong-word"
    with pytest.raises(
        ConnectError, match=r"the connection to database 'app' failed: .* authentication"
    ) as fault:
        one(databases)
    assert "wrong-word" not in str(fault.value)
    assert isinstance(fault.value, OSError)


@pytest.mark.parametrize("sslmode", ["require", "verify-ca", "verify-full"])
def test_a_connection_to_a_database_server_without_tls_fails_if_the_settings_require_tls(
    make: Make, sslmode: str
) -> None:
    with pytest.raises(ConnectError, match="server does not support SSL"):
        one(make(sslmode=sslmode))


@pytest.mark.parametrize("field", ["host", "username", "password", "dbname"])
def test_the_error_names_a_missing_field_of_the_database_secret_without_values_of_the_others(
    databases: Databases, vault: Vault, field: str
) -> None:
    shown = {name: str(value) for name, value in vault.secret.items()}
    del vault.secret[field]
    with pytest.raises(LookupError, match=f"required field `{field}`; the secret and the settings") as fault:
        one(databases)
    assert not [name for name in ("host", "password", "dbname") if shown[name] in str(fault.value)]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"port": 0}, "Expected `int` >= 1 - at `$.port`"),
        ({"port": "x"}, "Expected `int`, got `str` - at `$.port`"),
        ({"host": ""}, "Expected `str` of length >= 1 - at `$.host`"),
        ({"password": None}, "Expected `str`, got `null` - at `$.password`"),
    ],
)
def test_the_error_names_an_invalid_field_of_the_database_secret_and_its_problem(
    databases: Databases, vault: Vault, change: dict[str, object], problem: str
) -> None:
    vault.secret |= change
    with pytest.raises(LookupError) as fault:
        one(databases)
    assert f"the secret of database 'app' is not a login: {problem}; the secret and" in str(fault.value)


def test_a_secret_that_is_not_json_is_reported_without_its_content(
    databases: Databases, vault: Vault
) -> None:
    vault.secret = "postgres://secret"  # type: ignore[assignment]
    with pytest.raises(
        LookupError, match="the secret of database 'app' is not a login: JSON is malformed"
    ) as fault:
        one(databases)
    assert "postgres" not in str(fault.value)


def test_the_settings_of_a_database_supply_the_fields_that_its_secret_lacks(make: Make, vault: Vault) -> None:
    """A secret that RDS manages has only the username and the password."""
    where = {name: vault.secret.pop(name) for name in ("host", "port", "dbname")}
    assert one(make(**where)) == 1


def test_a_field_of_the_database_secret_overrides_the_setting(make: Make) -> None:
    assert one(make(host="nowhere.invalid", port=1, dbname="nothing")) == 1


def test_an_empty_setting_of_a_database_counts_as_missing(make: Make, vault: Vault) -> None:
    del vault.secret["host"]
    with pytest.raises(LookupError, match=r"required field `host`; the secret and the settings"):
        one(make(host="", port=0, dbname=""))


@pytest.mark.parametrize("secret", ["[]", '"text"', "null"])
def test_a_database_secret_that_is_not_a_json_object_is_refused(
    make: Make, vault: Vault, secret: str
) -> None:
    vault.secret = secret  # type: ignore[assignment]
    with pytest.raises(LookupError, match="is not a login: Expected `object`"):
        one(make(host="127.0.0.1", dbname="app"))


def test_the_port_of_a_database_secret_may_be_a_text(databases: Databases, vault: Vault) -> None:
    vault.secret["port"] = str(vault.secret["port"])
    assert one(databases) == 1


def test_the_error_about_an_unknown_database_names_the_known_ones(databases: Databases) -> None:
    with pytest.raises(
        LookupError, match="no database 'other'; the settings have app: add it under databases"
    ):
        databases.connection("other").__enter__()
