"""A secret as Secrets Manager hands it out, which a test may rotate."""

import json
from datetime import UTC, datetime
from typing import Any

from mailroom.environment import DatabaseSettings

ARN = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:app-AbCdEf"


class Vault:
    """The client, with one secret."""

    class exceptions:  # noqa: N801 - the client names it so
        class ResourceNotFoundException(Exception):
            pass

    def __init__(self, **secret: Any) -> None:
        self.secret = secret
        self.reads = 0

    def get_secret_value(self, *, SecretId: str, VersionStage: str) -> dict[str, Any]:  # noqa: N803
        assert (SecretId, VersionStage) == (ARN, "AWSCURRENT")
        self.reads += 1
        text = self.secret if isinstance(self.secret, str) else json.dumps(self.secret)
        return {"SecretString": text, "CreatedDate": datetime(2026, 11, 21, tzinfo=UTC)}


def database_settings(**changes: Any) -> DatabaseSettings:
    """A database's settings."""
    times = {"connect_seconds": 5, "statement_seconds": 60}
    return DatabaseSettings(**({"secret_arn": ARN, "sslmode": "disable"} | times | changes))
