"""The PostgreSQL databases that campaigns may ask, and their rules."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import Field

from mailroom_stacks.settings.campaigns import (
    FIRST_PAGE_QUERIES,
    PUT_SECONDS,
    Campaigns,
)
from mailroom_stacks.settings.sections import Section
from mailroom_stacks.settings.sentences import number
from mailroom_stacks.settings.times import Times

_SECRETS_ARN = r"^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[A-Za-z0-9/_+=.@-]{1,512}$"


class Database(Section):
    """One database, and how much of it Mailroom may take."""

    secret_arn: str = Field(pattern=_SECRETS_ARN)
    """The ARN of a secret as RDS writes it: host, port, username, password, dbname. What it lacks stands
    here."""
    host: str | None = Field(default=None, pattern=r"^[A-Za-z0-9:][A-Za-z0-9._:-]{0,252}$")
    """The database's host, if its secret does not say."""
    port: int | None = Field(default=None, ge=1, le=65_535)
    """The database's port, if its secret does not say; null is PostgreSQL's own, 5432."""
    dbname: str | None = Field(default=None, pattern=r"^[^\x00-\x1f\x7f]{1,63}$")
    """The database's name on its server, if its secret does not say."""
    connections: int = Field(ge=2, le=100_000)
    """How many of its connections campaigns may hold at once. Dry runs and deployments may take some more."""
    sslmode: Literal["verify-full", "verify-ca", "require", "disable"] = "verify-full"
    """What is asked of the server's certificate."""
    ca_file: str | None = Field(default=None, pattern=r"^[\w-][\w.-]*(/[\w-][\w.-]*)*$")
    """The certificates of the authorities: a file of this repository, such as
    campaigns/rds-global-bundle.pem; null takes the system's."""
    statement_seconds: int = Field(default=20, ge=1, le=800)
    """The longest that one query may take."""


RDS_BUNDLE = "https://truststore.pki.rds.amazonaws.com/global/global-bundle.pem"


def database_faults(
    key: str,
    database: Database,
    workers: dict[str, int],
    people: int,
    section: Campaigns,
    times: Times,
    root: Path,
) -> Iterator[str]:
    """Rules of the database of `key`, which so many `workers` of each function may ask at once; the largest
    group that is composed with its help has `people`. The file of its certificates lies below `root`."""
    total = sum(workers.values())
    if total > database.connections:
        parts = " + ".join(f"{function} {count}" for function, count in workers.items())
        yield (
            f"{key}.connections: ({parts} workers at once) = {total} must be at most {database.connections}; "
            f"lower the campaigns' concurrency, or let Mailroom have {total} connections."
        )
    if "collect" in workers:
        limit = section.collect.timeout_seconds
        yield from _slow_query(key, database, times, "collect", limit, queries=FIRST_PAGE_QUERIES)
    if "compose" in workers:
        limit = section.compose.timeout_seconds
        yield from _slow_query(key, database, times, "compose", limit, people=people)
    if database.ca_file is not None and not (root / database.ca_file).is_file():
        yield (
            f"{key}.ca_file: {database.ca_file!r} is not there; put it there (that of RDS is "
            f"{RDS_BUNDLE}), or set it to null for the system's."
        )


def _slow_query(
    key: str,
    database: Database,
    times: Times,
    function: str,
    timeout: int,
    *,
    queries: int = 1,
    people: int = 0,
) -> Iterator[str]:
    """The rule that the database ends a query that lasts too long before Lambda ends its function, which
    connects, asks and puts messages to `people` within its time-out."""
    connected = 2 * times.database_connect  # the second try has the secret's new password
    others = connected + people * PUT_SECONDS
    needed = others + queries * database.statement_seconds
    if needed >= timeout:
        puts = f" + recipients_per_message {people} x {PUT_SECONDS}" if people else ""
        most = math.ceil((timeout - others) / queries - 1e-9) - 1
        yield (
            f"{key}.statement_seconds: {connected} to connect + {queries} x {database.statement_seconds}"
            f"{puts} = {number(needed)} s must be under campaigns.{function}.timeout_seconds {timeout}; "
            f"use {most} or less, or raise that time-out."
        )
