"""The PostgreSQL databases that campaigns may ask."""

from typing import Literal

from pydantic import Field

from stacks.settings.sections import Section

_SECRETS_ARN = r"^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[A-Za-z0-9/_+=.@-]{1,512}$"


class Database(Section):
    """One database, and how much of it Mailroom may take."""

    secret_arn: str = Field(pattern=_SECRETS_ARN)
    """The ARN of the secret that says where it is and as whom to ask, as RDS writes it: host, port,
    username, password, dbname. What it lacks stands here: one that RDS itself manages holds the username and
    the password alone."""
    host: str | None = Field(default=None, pattern=r"^[A-Za-z0-9:][A-Za-z0-9._:-]{0,252}$")
    """Where it is, if its secret does not say."""
    port: int | None = Field(default=None, ge=1, le=65_535)
    """On which port, if its secret does not say; null is PostgreSQL's own, 5432."""
    dbname: str | None = Field(default=None, pattern=r"^[^\x00-\x1f\x7f]{1,63}$")
    """What it is called on its server, if its secret does not say."""
    connections: int = Field(ge=2, le=100_000)
    """How many of its connections campaigns may hold at once. A dry run takes one more of each function, and
    while a new version is deployed the old one's may still be open: leave the database room for those."""
    pool_size: int = Field(default=1, ge=1, le=100)
    """How many connections one function's process may hold."""
    sslmode: Literal["verify-full", "verify-ca", "require", "disable"] = "verify-full"
    """What is asked of the server's certificate."""
    ca_file: str | None = Field(default=None, pattern=r"^[\w-][\w.-]*(/[\w-][\w.-]*)*$")
    """The certificates of who may have signed the server's: a file of this repository, such as
    campaigns/rds-global-bundle.pem; null takes the system's."""
    connect_seconds: int = Field(default=5, ge=1, le=60)
    """How long a connection may take to be made."""
    statement_seconds: int = Field(default=20, ge=1, le=800)
    """The longest that one query may take."""
