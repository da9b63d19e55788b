"""Current versions of published templates. A message gets the current version of its template when it is
queued.

One object in the stage's bucket contains the current versions of all templates, so that a version is changed
by one conditional write.
"""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from mailroom.aws import clients
from mailroom.clock import Clock
from mailroom.message.message import Message, Templated
from mailroom.telemetry import logger

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

CURRENT = "current.json"
"""Key of the object with the current versions."""
FRESH_SECONDS = 30
"""Seconds until a process reads the object again, so that a new version is used everywhere within a
minute."""
DEPLOYED = 0
"""Version number of the template in the sender's own bundle."""
MAX_BEFORE = 100
"""Maximum number of earlier versions to which a rollback can return. The limit keeps the object small,
because each function that uses templates reads it."""


class Choice(Struct, frozen=True):
    """Current version of one template."""

    version: int
    by: str
    """ARN of the AWS identity that chose the version."""
    at: str
    """Time of the choice, in ISO 8601."""
    before: tuple[int, ...] = ()
    """Earlier current versions, the latest last, without those that were rolled back."""


Choices = dict[str, Choice]
"""Choices by channel and template name, such as mail/welcome."""


def read_choices(content: bytes) -> Choices:
    """Return the choices in the content of the object. Raises msgspec.DecodeError."""
    return msgspec.json.decode(content, type=Choices)


class CurrentVersions:
    """Current versions of a stage's templates, with a cache."""

    def __init__(self, client: "S3Client", bucket: str, clock: Clock = time.time) -> None:
        self._client = client
        self._bucket = bucket
        self._clock = clock
        self._read_at: float | None = None
        self._versions: dict[str, dict[str, int]] = {}

    def of(self, channel: str) -> Mapping[str, int]:
        """Return the current versions of a channel's templates, by name. A template that was never published
        is missing. If the object cannot be read, the versions of the last read are used. Raises botocore's
        errors if it was never read."""
        moment = self._clock()
        if self._read_at is None or moment - self._read_at >= FRESH_SECONDS:
            try:
                self._versions = _by_channel(self._read())
            except (ClientError, BotoCoreError):
                if self._read_at is None:
                    raise
                logger.warning("the versions of templates were not read", exc_info=True)
            self._read_at = moment
        return self._versions.get(channel, {})

    def _read(self) -> Choices:
        try:
            reply = self._client.get_object(Bucket=self._bucket, Key=CURRENT)
        except self._client.exceptions.NoSuchKey:
            return {}
        return read_choices(reply["Body"].read())

    def bound(self, message: Message, item: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the item of a message with the current version of its template, so that each try renders the
        same version. Raises the same errors as `of`."""
        name = unbound(message)
        return item if name is None else {**item, "template_version": self.version(message.event_type, name)}

    def version(self, channel: str, name: str) -> int:
        """Return the current version of a template. Raises the same errors as `of`."""
        return self.of(channel).get(name, DEPLOYED)


def _by_channel(choices: Choices) -> dict[str, dict[str, int]]:
    versions: dict[str, dict[str, int]] = {}
    for path, choice in choices.items():
        channel, _, name = path.partition("/")
        versions.setdefault(channel, {})[name] = choice.version
    return versions


def versions_of(bucket: str) -> CurrentVersions | None:
    """Return the current versions of a stage, or None if the stage does not publish templates."""
    return CurrentVersions(clients.s3(), bucket) if bucket else None


def unbound(message: Message) -> str | None:
    """Return the template's name if a message has a template without a version, or else None."""
    if not isinstance(message, Templated) or message.template_version is not None:
        return None
    return message.template_name
