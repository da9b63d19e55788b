"""Which published versions of templates count, and how a message is bound to one when it is queued.

One object of the stage's bucket names them all, so that a publisher switches it by one conditional write.
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
"""Key of that object."""
FRESH_SECONDS = 30
"""Seconds until a process reads the object again: a new version counts everywhere within a minute."""
DEPLOYED = 0
"""Number of the version that means the template of the sender's own bundle."""
MAX_BEFORE = 100
"""Maximum number of versions to which a rollback can return: each reader of templates reads them all."""


class Choice(Struct, frozen=True):
    """The version of one template that counts."""

    version: int
    by: str
    """Identity that chose the version, as AWS names it."""
    at: str
    """Time of the choice, in ISO 8601."""
    before: tuple[int, ...] = ()
    """Versions that counted before it, the latest last, without those that were taken back."""


Choices = dict[str, Choice]
"""Choices by channel and name, as in mail/welcome."""


def read_choices(content: bytes) -> Choices:
    """Read the object of choices. Raises msgspec.DecodeError."""
    return msgspec.json.decode(content, type=Choices)


class CurrentVersions:
    """Versions of one stage that count now."""

    def __init__(self, client: "S3Client", bucket: str, clock: Clock = time.time) -> None:
        self._client = client
        self._bucket = bucket
        self._clock = clock
        self._read_at: float | None = None
        self._versions: dict[str, dict[str, int]] = {}

    def of(self, channel: str) -> Mapping[str, int]:
        """Return the versions of a channel's templates, by name; a missing template was never published. If
        they cannot be read, the versions of the last read go on counting; raises botocore's errors if there
        was none."""
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
        """Return the item of a message with the version of its template that counts now, so that each try
        renders the same. Raises as `of`."""
        name = unbound(message)
        return item if name is None else {**item, "template_version": self.version(message.event_type, name)}

    def version(self, channel: str, name: str) -> int:
        """Return the version of a template that counts now. Raises as `of`."""
        return self.of(channel).get(name, DEPLOYED)


def _by_channel(choices: Choices) -> dict[str, dict[str, int]]:
    versions: dict[str, dict[str, int]] = {}
    for path, choice in choices.items():
        channel, _, name = path.partition("/")
        versions.setdefault(channel, {})[name] = choice.version
    return versions


def versions_of(bucket: str) -> CurrentVersions | None:
    """Return the versions of a stage, or None if the stage publishes none."""
    return CurrentVersions(clients.s3(), bucket) if bucket else None


def unbound(message: Message) -> str | None:
    """Return the template of a message that does not name its version. Returns None for any other message."""
    if not isinstance(message, Templated) or message.template_version is not None:
        return None
    return message.template_name
