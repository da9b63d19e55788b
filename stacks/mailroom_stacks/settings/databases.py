"""The PostgreSQL databases that campaigns may ask, and their rules."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import Field

from mailroom_stacks.settings.sections import Section

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


RDS_BUNDLE = "https://truststore.pki.rds.amazonaws.com/global/global-bundle.pem"


def database_faults(key: str, database: Database, workers: dict[str, int], root: Path) -> Iterator[str]:
    """Rules of the database of `key`, which so many `workers` of each function may ask at once. The file of
    its certificates lies below `root`."""
    total = sum(workers.values())
    if total > database.connections:
        parts = " + ".join(f"{function} {count}" for function, count in workers.items())
        yield (
            f"{key}.connections: ({parts} workers at once) = {total} must be at most {database.connections}; "
            f"lower the campaigns' concurrency, or let Mailroom have {total} connections."
        )
    if database.ca_file is not None and not (root / database.ca_file).is_file():
        yield (
            f"{key}.ca_file: {database.ca_file!r} is not there; put it there (that of RDS is "
            f"{RDS_BUNDLE}), or set it to null for the system's."
        )
