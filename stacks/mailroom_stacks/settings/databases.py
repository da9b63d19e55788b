"""PostgreSQL databases of campaigns."""

from typing import Literal

from pydantic import Field

from mailroom_stacks.settings.sections import Section

_SECRETS_ARN = r"^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[A-Za-z0-9/_+=.@-]{1,512}$"


class Database(Section):
    """PostgreSQL database that campaigns query."""

    secret_arn: str = Field(pattern=_SECRETS_ARN)
    """ARN of a secret in the JSON format of RDS, with host, port, username, password and dbname. Set host,
    port and dbname here if the secret does not contain them."""
    host: str | None = Field(default=None, pattern=r"^[A-Za-z0-9:][A-Za-z0-9._:-]{0,252}$")
    """Host of the database, if the secret does not contain it."""
    port: int | None = Field(default=None, ge=1, le=65_535)
    """Port of the database, if the secret does not contain it; null means PostgreSQL's default, 5432."""
    dbname: str | None = Field(default=None, pattern=r"^[^\x00-\x1f\x7f]{1,63}$")
    """Name of the database on its server, if the secret does not contain it."""
    sslmode: Literal["verify-full", "verify-ca", "require", "disable"] = "verify-full"
    """Verification of the server's certificate, as in libpq's sslmode."""
    ca_file: str | None = Field(default=None, pattern=r"^[\w-][\w.-]*(/[\w-][\w.-]*)*$")
    """CA certificates: path of a PEM file below the folder of cdk.json, such as
    campaigns/rds-global-bundle.pem; null means the CA certificates of the system."""


RDS_BUNDLE = "https://truststore.pki.rds.amazonaws.com/global/global-bundle.pem"
"""URL of the CA certificates of RDS."""
