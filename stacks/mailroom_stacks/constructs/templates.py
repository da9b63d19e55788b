"""Permissions and settings of functions that render templates, both those of the bundle and the versions that
the stage publishes."""

from typing import Any

from aws_cdk import Stack

from mailroom_stacks.constructs.grants import Grant
from mailroom_stacks.constructs.storage import bucket_name, read_objects
from mailroom_stacks.paths import TEMPLATES
from mailroom_stacks.settings.settings import Settings


def templates_bucket(settings: Settings) -> str:
    """Return the name of the bucket of published versions, or an empty string if the stage does not publish
    templates."""
    return bucket_name(settings, "templates") if settings.templates.publish else ""


def read_templates(stack: Stack, settings: Settings, keys: str, reason: str = "") -> list[Grant]:
    """Return the permissions to read the objects `keys` of the bucket of published templates: versions, or
    the list of current versions. `reason` is required if `keys` contains a wildcard."""
    bucket = templates_bucket(settings)
    return read_objects(stack, bucket, keys, reason) if bucket else []


def templates_fields(settings: Settings, folder: str) -> dict[str, Any]:
    """Return the fields of a function's settings for templates and for unused attributes. `folder` is the
    folder of the function's templates below templates/: a channel's name, or empty for all channels."""
    # A local stage reads the original templates instead of a copy, so an edit applies to the next message.
    root = TEMPLATES if settings.is_local else TEMPLATES.relative_to(TEMPLATES.parent)
    return {
        "templates": str(root / folder),
        "templates_bucket": templates_bucket(settings),
        "unknown": settings.items.unknown,
    }
