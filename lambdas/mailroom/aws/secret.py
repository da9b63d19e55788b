"""Secrets of Secrets Manager: strict parsing of their values, and a cache that expires, so that a running
function gets a new value without a restart."""

from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

import msgspec
from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from mailroom.clock import Clock
from mailroom.errors import InvalidSecret
from mailroom.message.outcome import Misconfigured, NotReady, Retry
from mailroom.telemetry import logger

if TYPE_CHECKING:
    from types_boto3_secretsmanager import SecretsManagerClient

T = TypeVar("T")

READ_AGAIN_SECONDS = 60
"""Seconds for which a warm function may use a secret's value that was replaced. With one read a minute, the
reads of a process that is always busy cost $0.22 a month."""
CURRENT, PREVIOUS = "AWSCURRENT", "AWSPREVIOUS"


class Version(Struct, frozen=True):
    """Version of a secret's value."""

    text: str
    """Secret text, which must never be logged."""
    created: float
    """Time in epoch seconds at which this value was put into Secrets Manager."""

    def __repr__(self) -> str:
        return f"Version(text=…, created={self.created})"


def read_secret(text: str, kind: type[T], problem: str) -> T:
    """Return the content of a secret, parsed from JSON into the type `kind`. Raises InvalidSecret with the
    sentence `problem`, which describes the valid form."""
    with suppress(msgspec.DecodeError, UnicodeError, RecursionError):
        return msgspec.json.decode(text, type=kind)
    # The error is raised outside of the `with` block, so that it has no context: the decoder's message may
    # quote the secret.
    raise InvalidSecret(problem)


def unreadable(secret: str, error: ClientError | BotoCoreError) -> NotReady:
    """Return the NotReady error for a message that was not sent because a secret cannot be read. `secret` is
    the secret's name in the error's text.

    An error that may be temporary becomes a `Retry`. Any other error of AWS becomes `Misconfigured`.
    """
    reason = f"{secret} cannot be read: {error}"
    if not isinstance(error, ClientError):
        return NotReady(Retry(reason))
    temporary = error.response["ResponseMetadata"]["HTTPStatusCode"] >= 500
    throttled = error.response["Error"]["Code"].startswith(("Throttling", "TooManyRequests"))
    return NotReady(Retry(reason) if temporary or throttled else Misconfigured(reason))


class CachedSecret:
    """Cache of a secret's current and previous versions, each of which is read again after `seconds`.

    If a version cannot be read again, its last value is used. If the version was never read, the error is
    raised.
    """

    def __init__(
        self, client: "SecretsManagerClient", arn: str, clock: Clock, seconds: float = READ_AGAIN_SECONDS
    ) -> None:
        self._client = client
        self._arn = arn
        self._clock = clock
        self._seconds = seconds
        self._versions: dict[str, tuple[Version | None, float]] = {}
        """Versions by staging label, such as AWSCURRENT, each with the time of its last read."""

    def current(self, seconds: float | None = None) -> Version:
        """Return the current version. Raises botocore's errors, and LookupError if the secret lacks a current
        value.

        The value is read again if the last read is more than `seconds` ago, by default the constructor's
        `seconds`.
        """
        version = self._version(CURRENT, self._seconds if seconds is None else seconds)
        if version is None:
            raise LookupError("the secret has no current value; add one")
        return version

    def previous(self) -> Version | None:
        """Return the previous version, or None if there is none. Raises botocore's errors."""
        return self._version(PREVIOUS, self._seconds)

    def _version(self, stage: str, seconds: float) -> Version | None:
        cached, moment = self._versions.get(stage), self._clock()
        if cached is not None and moment < cached[1] + seconds:
            return cached[0]
        try:
            version = self._read(stage)
        except (ClientError, BotoCoreError) as error:
            if cached is None:
                raise
            logger.warning("secret not read again; its old value is used", stage=stage, error=str(error))
            version = cached[0]
        self._versions[stage] = version, moment
        return version

    def _read(self, stage: str) -> Version | None:
        try:
            response = self._client.get_secret_value(SecretId=self._arn, VersionStage=stage)
        except self._client.exceptions.ResourceNotFoundException:
            if stage == CURRENT:
                raise
            return None
        created: datetime = response["CreatedDate"]
        return Version(response.get("SecretString", ""), created.timestamp())
