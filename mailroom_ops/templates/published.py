"""The published versions of a stage's templates, as objects in a bucket: an immutable object for each
version, and an object (CURRENT) that names the current versions.

A version is written before CURRENT, and CURRENT is written only if it has not changed since it was read. So a
crash leaves at most a version that is not current, and if two operators publish at the same time, one of them
is refused.
"""

import time
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError
from msgspec import Struct

from mailroom.clock import Clock, iso
from mailroom.content.templates import MAX_VERSION_BYTES, Version, read_version, version_key
from mailroom.content.versions import CURRENT, DEPLOYED, MAX_BEFORE, Choice, Choices, read_choices
from mailroom.message.message import encode
from mailroom_ops.messages.items import rules_of
from mailroom_ops.shared.deeds import Deeds
from mailroom_ops.shared.refusals import Refused
from mailroom_stacks.templates.folder import Item, TemplateName

if TYPE_CHECKING:
    import boto3
    from types_boto3_s3 import S3Client

_BEATEN = ("PreconditionFailed", "ConditionalRequestConflict")
"""Error codes with which S3 rejects a conditional write because another write came first:
https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html."""


NOTHING = Choice(DEPLOYED, "", "")
"""Choice of a template that was never published."""


class Published(Struct, frozen=True):
    """Bucket with the published versions of one stage."""

    client: "S3Client"
    bucket: str
    deeds: Deeds
    clock: Clock

    def choices(self) -> Choices:
        """Return the choices of current versions, by channel and name, as in mail/welcome."""
        return self._read()[0]

    def version(self, template: TemplateName, number: int) -> Version:
        """Return a version of a template. Raises Refused if the version does not exist."""
        key = version_key(template.channel, template.name, number)
        try:
            reply = self.client.get_object(Bucket=self.bucket, Key=key)
        except self.client.exceptions.NoSuchKey:
            numbers = ", ".join(map(str, self.numbers(template))) or "none"
            raise Refused(f"{template.path} has no version {number}. There are: {numbers}.") from None
        return read_version(reply["Body"].read())

    def numbers(self, template: TemplateName) -> list[int]:
        """Return the numbers of all versions of a template that were ever written, the oldest first."""
        pages = self.client.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket, Prefix=f"{template.path}/"
        )
        names = (entry["Key"].rpartition("/")[2] for page in pages for entry in page.get("Contents", ()))
        return sorted(int(name.removesuffix(".json")) for name in names)

    def put(
        self,
        template: TemplateName,
        parts: dict[str, str],
        examples: dict[str, Item],
        attached: dict[str, bytes],
    ) -> tuple[Version, bool]:
        """Write a version and make it current. Return the version, and whether it is new: if the current
        version has the same content, no version is written. Raises Refused if the version is too large, or if
        somebody else published at the same time."""
        choices, unchanged = self._read()
        current = choices.get(template.path, NOTHING)
        if current.version != DEPLOYED:
            version = self.version(template, current.version)
            if (version.parts, version.examples, version.attached) == (parts, examples, attached):
                return version, False
        number = max(self.numbers(template), default=0) + 1
        identity = (template.channel, template.name, number)
        version = Version(*identity, parts, examples, self.deeds.by(), iso(self.clock()), attached)
        size = len(encode(version).encode())
        if size > MAX_VERSION_BYTES:
            raise Refused(f"{template.path} has {size:,} bytes; a version may have {MAX_VERSION_BYTES:,}.")
        self.deeds.record(f"publish version {number}", [f"template#{template.path}"])
        self._put(version.key, version, IfNoneMatch="*")
        self._choose(template, number, choices, unchanged)
        return version, True

    def roll_back(self, template: TemplateName, to: int | None = None) -> int:
        """Make another version current, by default the previous one. DEPLOYED is the stage's deployed
        template. Return the version's number. Raises Refused if the version does not exist or is current
        already, or if somebody else published at the same time."""
        choices, unchanged = self._read()
        current = choices.get(template.path, NOTHING)
        if to is None:
            to = current.before[-1] if current.before else current.version
        if to == current.version:
            raise Refused(f"{template.path} is at {words_of(to)} already.")
        if to != DEPLOYED:
            self.version(template, to)
        self.deeds.record(f"roll back to {words_of(to)}", [f"template#{template.path}"])
        self._choose(template, to, choices, unchanged)
        return to

    def _choose(
        self, template: TemplateName, number: int, choices: Choices, unchanged: dict[str, Any]
    ) -> None:
        """Make a version current, if the stored choices are still `choices`. If the version was current
        before, the versions that were current since then leave the history, so that a later rollback does not
        return to them."""
        current = choices.get(template.path, NOTHING)
        before = (*current.before, current.version)
        before = before[: before.index(number)] if number in before else before[-MAX_BEFORE:]
        choice = Choice(number, self.deeds.by(), iso(self.clock()), before)
        self._put(CURRENT, {**choices, template.path: choice}, **unchanged)

    def _read(self) -> tuple[Choices, dict[str, Any]]:
        """Return the current versions, and the condition of a write that replaces exactly these."""
        try:
            reply = self.client.get_object(Bucket=self.bucket, Key=CURRENT)
        except self.client.exceptions.NoSuchKey:
            return {}, {"IfNoneMatch": "*"}
        return read_choices(reply["Body"].read()), {"IfMatch": reply["ETag"]}

    def _put(self, key: str, content: Version | Choices, **condition: Any) -> None:
        body = encode(content).encode()
        try:
            self.client.put_object(
                Bucket=self.bucket, Key=key, Body=body, ContentType="application/json", **condition
            )
        except ClientError as error:
            if error.response["Error"]["Code"] not in _BEATEN:
                raise
            raise Refused(
                "Somebody else has published at the same time, or S3's response was lost. See the current "
                "versions (mailroom template list), then repeat the command."
            ) from None


def words_of(number: int) -> str:
    """Return the name of a version."""
    return "the deployed template" if number == DEPLOYED else f"version {number}"


def published_of(session: "boto3.Session", stage: str) -> Published:
    """Return the published templates of a stage. Raises Refused if the stage does not publish templates."""
    bucket = rules_of(session, stage).templates_bucket
    if not bucket:
        raise Refused(
            f'Stage {stage} does not publish templates. Set "templates": {{"publish": true}} in cdk.json and '
            "deploy it."
        )
    return Published(session.client("s3"), bucket, Deeds(session, stage), time.time)
