"""PostgreSQL databases of campaigns."""

from typing import Literal

from pydantic import Field

from mailroom_stacks.settings.sections import Section

_SECRETS_ARN = r"^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[A-Za-z0-9/_+=.@-]{1,512}$"


class Database(Section):
    """Database of campaigns."""

    secret_arn: str = Field(pattern=_SECRETS_ARN)
    """ARN of a secret in the form of RDS: host, port, username, password, dbname. What the secret lacks
    stands in these settings."""
    host: str | None = Field(default=None, pattern=r"^[A-Za-z0-9:][A-Za-z0-9._:-]{0,252}$")
    """Host of the database, if its secret has none."""
    port: int | None = Field(default=None, ge=1, le=65_535)
    """Port of the database, if its secret has none; null means PostgreSQL's own, 5432."""
    dbname: str | None = Field(default=None, pattern=r"^[^\x00-\x1f\x7f]{1,63}$")
    """Name of the database on its server, if its secret has none."""
    sslmode: Literal["verify-full", "verify-ca", "require", "disable"] = "verify-full"
    """Requirement on the server's certificate."""
    ca_file: str | None = Field(default=None, pattern=r"^[\w-][\w.-]*(/[\w-][\w.-]*)*$")
    """Certificates of the authorities: a file of this repository, such as campaigns/rds-global-bundle.pem;
    null means those of the system."""


RDS_BUNDLE = "https://truststore.pki.rds.amazonaws.com/global/global-bundle.pem"
"""Certificates of RDS's authorities."""
