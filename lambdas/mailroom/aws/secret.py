"""A secret of Secrets Manager, kept for a while: a warm function learns of a new value without a start."""

from datetime import datetime
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from mailroom.clock import Clock
from mailroom.message.outcome import Misconfigured, NotReady, Retry
from mailroom.telemetry import logger

if TYPE_CHECKING:
    from types_boto3_secretsmanager import SecretsManagerClient

READ_AGAIN_SECONDS = 60
"""For as long a warm function may go on with a value that was replaced. Reading each minute costs a process
that is always busy $0.22 a month."""
CURRENT, PREVIOUS = "AWSCURRENT", "AWSPREVIOUS"


class Version(Struct, frozen=True):
    """One value of a secret, and when it was put there (epoch seconds). Never log it."""

    text: str
    created: float

    def __repr__(self) -> str:
        return f"Version(text=…, created={self.created})"


def unreadable(what: str, error: ClientError | BotoCoreError) -> NotReady:
    """What a secret that cannot be read means for a message: nothing was sent. What AWS refuses outright is
    ours to put right."""
    reason = f"{what} cannot be read: {error}"
    if not isinstance(error, ClientError):
        return NotReady(Retry(reason))
    passing = error.response["ResponseMetadata"]["HTTPStatusCode"] >= 500
    throttled = error.response["Error"]["Code"].startswith(("Throttling", "TooManyRequests"))
    return NotReady(Retry(reason) if passing or throttled else Misconfigured(reason))


class CachedSecret:
    """The versions of one secret, each read again after `seconds`.

    While it cannot be read again, what is known stays good; where nothing is known the error is raised.
    """

    def __init__(
        self, client: "SecretsManagerClient", arn: str, clock: Clock, seconds: float = READ_AGAIN_SECONDS
    ) -> None:
        self._client = client
        self._arn = arn
        self._clock = clock
        self._seconds = seconds
        self._kept: dict[str, tuple[Version | None, float]] = {}
        """The versions by stage, each with the time when it was last asked for."""

    def current(self, seconds: float | None = None) -> Version:
        """The value in use, read again where that was last tried more than `seconds` ago (None: the secret's
        own). Raises botocore's errors."""
        version = self._version(CURRENT, self._seconds if seconds is None else seconds)
        if version is None:
            raise LookupError("the secret has no current value; put one")
        return version

    def previous(self) -> Version | None:
        """The value before it; None: there was none. Raises botocore's errors."""
        return self._version(PREVIOUS, self._seconds)

    def _version(self, stage: str, seconds: float) -> Version | None:
        kept, now = self._kept.get(stage), self._clock()
        if kept is not None and now < kept[1] + seconds:
            return kept[0]
        try:
            version = self._read(stage)
        except (ClientError, BotoCoreError) as error:
            if kept is None:
                raise
            logger.warning("secret not read again; its old value stays", stage=stage, error=str(error))
            version = kept[0]
        self._kept[stage] = version, now
        return version

    def _read(self, stage: str) -> Version | None:
        try:
            reply = self._client.get_secret_value(SecretId=self._arn, VersionStage=stage)
        except self._client.exceptions.ResourceNotFoundException:
            if stage == CURRENT:
                raise
            return None
        created: datetime = reply["CreatedDate"]
        return Version(reply.get("SecretString", ""), created.timestamp())
