"""Rights and settings of functions that render templates: those of the bundle, and those that the stage
publishes."""

from typing import Any

from aws_cdk import Stack

from mailroom_stacks.constructs.grants import Grant
from mailroom_stacks.constructs.storage import bucket_name
from mailroom_stacks.paths import TEMPLATES
from mailroom_stacks.settings.settings import Settings


def templates_bucket(settings: Settings) -> str:
    """Return the name of the bucket of published versions; empty for a stage that publishes none."""
    return bucket_name(settings, "templates") if settings.templates.publish else ""


def read_templates(stack: Stack, settings: Settings, keys: str, reason: str = "") -> list[Grant]:
    """Return the rights to read published versions of templates, or the list of current versions. `reason` is
    for keys with a wildcard."""
    if not settings.templates.publish:
        return []
    name = templates_bucket(settings)
    bucket = stack.format_arn(service="s3", region="", account="", resource=name)
    return [
        # Without s3:ListBucket, S3 responds to a request for a missing object with 403, like for missing
        # permissions, and not with 404.
        Grant(["s3:ListBucket"], [bucket]),
        Grant(["s3:GetObject"], [f"{bucket}/{keys}"], wildcard=reason),
    ]


def templates_fields(settings: Settings, folder: str) -> dict[str, Any]:
    """Return the fields of a function's settings about templates and the attributes that they use. `folder`
    is the folder of its templates below templates/: a channel's name, or empty for all channels."""
    # Stage local reads the templates that people write, not a copy: an edit counts for the next message.
    root = TEMPLATES if settings.is_local else TEMPLATES.relative_to(TEMPLATES.parent)
    return {
        "templates": str(root / folder),
        "templates_bucket": templates_bucket(settings),
        "unknown": settings.items.unknown,
    }
