"""Versions of templates that a test lets count."""

import msgspec

from mailroom.content.templates import Version
from mailroom.content.versions import CURRENT
from tests.support.unit.shared import TEMPLATES, Aws


def choose(aws: Aws, **versions: int) -> None:
    """Let these versions of mails' templates count."""
    choices = {f"mail/{name}": {"version": each, "by": "", "at": ""} for name, each in versions.items()}
    aws.s3.put_object(Bucket=TEMPLATES, Key=CURRENT, Body=msgspec.json.encode(choices))


def publish(aws: Aws, number: int, text: str, **parts: str) -> Version:
    """A version of the mails' template `a`, with this text, and further parts by their paths."""
    own = {"a/subject.txt": "Hello", "a/body.txt": text, **parts}
    version = Version("mail", "a", number, own, {}, "arn:ci", "2026-11-25T00:00:00Z")
    aws.s3.put_object(Bucket=TEMPLATES, Key=version.key, Body=msgspec.json.encode(version))
    return version
