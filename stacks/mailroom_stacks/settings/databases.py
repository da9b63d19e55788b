"""The PostgreSQL databases that campaigns may ask, and their rules."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import Field

from mailroom_stacks.settings.campaigns import (
    FIRST_PAGE_QUERIES,
    POOL_MARGIN_SECONDS,
    PUT_SECONDS,
    Campaigns,
    Compose,
)
from mailroom_stacks.settings.sections import Section, fixed
from mailroom_stacks.settings.sentences import number

_SECRETS_ARN = r"^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[A-Za-z0-9/_+=.@-]{1,512}$"


class Database(Section):
    """One database, and how much of it Mailroom may take."""

    secret_arn: str = Field(pattern=_SECRETS_ARN)
    """The ARN of the secret that says where it is and as whom to ask, as RDS writes it: host, port,
    username, password, dbname. What it lacks stands here: one that RDS itself manages holds the username and
    the password alone."""
    host: str | None = Field(default=None, pattern=r"^[A-Za-z0-9:][A-Za-z0-9._:-]{0,252}$")
    """The database's host, if its secret does not say."""
    port: int | None = Field(default=None, ge=1, le=65_535)
    """The database's port, if its secret does not say; null is PostgreSQL's own, 5432."""
    dbname: str | None = Field(default=None, pattern=r"^[^\x00-\x1f\x7f]{1,63}$")
    """The database's name on its server, if its secret does not say."""
    connections: int = Field(ge=2, le=100_000)
    """How many of its connections campaigns may hold at once. A dry run takes one more of each function, and
    while a new version is deployed the old one's may still be open: leave the database room for those."""
    pool_size: int = fixed(1)
    """How many connections one function's process may hold."""
    sslmode: Literal["verify-full", "verify-ca", "require", "disable"] = "verify-full"
    """What is asked of the server's certificate."""
    ca_file: str | None = Field(default=None, pattern=r"^[\w-][\w.-]*(/[\w-][\w.-]*)*$")
    """The certificates of who may have signed the server's: a file of this repository, such as
    campaigns/rds-global-bundle.pem; null takes the system's."""
    connect_seconds: int = fixed(5)
    """How long a connection may take to be made."""
    statement_seconds: int = Field(default=20, ge=1, le=800)
    """The longest that one query may take."""


RDS_BUNDLE = "https://truststore.pki.rds.amazonaws.com/global/global-bundle.pem"


def database_faults(
    key: str, database: Database, workers: dict[str, int], people: int, section: Campaigns, root: Path
) -> Iterator[str]:
    """Rules of the database of `key`, which so many `workers` of each function may ask at once; the largest
    group that is composed with its help has `people`. The file of its certificates lies below `root`."""
    yield from _connections(key, database, workers)
    if "collect" in workers:
        yield from _collecting(key, database, section.collect.timeout_seconds)
    if "compose" in workers:
        yield from _composing(key, database, section.compose, people)
    if database.ca_file is not None and not (root / database.ca_file).is_file():
        yield (
            f"{key}.ca_file: {database.ca_file!r} is not there; put it there (that of RDS is "
            f"{RDS_BUNDLE}), or set it to null for the system's."
        )


def _connections(key: str, database: Database, workers: dict[str, int]) -> Iterator[str]:
    total = sum(workers.values()) * database.pool_size
    if total > database.connections:
        parts = " + ".join(f"{function} {count}" for function, count in workers.items())
        yield (
            f"{key}.connections: ({parts} workers at once) = {total} must be at most {database.connections}; "
            f"lower the campaigns' concurrency, or let Mailroom have {total} connections."
        )


def _collecting(key: str, database: Database, timeout: int) -> Iterator[str]:
    """A query that lasts too long has to be ended by the database, before the function is by Lambda."""
    query = database.statement_seconds
    needed = _connected(database) + FIRST_PAGE_QUERIES * query
    if needed >= timeout:
        formula = f"{_formula(database)} + {FIRST_PAGE_QUERIES} x {query} = {needed} s"
        yield _too_slow(
            key, "collect", timeout, formula, (timeout - _connected(database)) / FIRST_PAGE_QUERIES
        )


def _composing(key: str, database: Database, compose: Compose, people: int) -> Iterator[str]:
    """A query for all `people` that are composed together has to end before the function does."""
    query = database.statement_seconds
    others = _connected(database) + people * PUT_SECONDS
    if others + query >= compose.timeout_seconds:
        formula = (
            f"{_formula(database)} + {query} + recipients_per_message {people} x {PUT_SECONDS} = "
            f"{number(others + query)} s"
        )
        yield _too_slow(key, "compose", compose.timeout_seconds, formula, compose.timeout_seconds - others)


def _connected(database: Database) -> int:
    """The longest that a function waits for a connection."""
    return 2 * database.connect_seconds + POOL_MARGIN_SECONDS


def _formula(database: Database) -> str:
    return f"2 x connect_seconds {database.connect_seconds} + {POOL_MARGIN_SECONDS}"


def _too_slow(key: str, function: str, timeout: int, formula: str, under: float) -> str:
    most = math.ceil(under - 1e-9) - 1
    return (
        f"{key}.statement_seconds: {formula} must be under campaigns.{function}.timeout_seconds {timeout}; "
        f"use {most} or less, or raise that time-out."
    )
