"""What a function needs to render templates: those of its bundle, and those that the stage publishes."""

from typing import Any

from aws_cdk import Stack

from mailroom_stacks.constructs.grants import Grant
from mailroom_stacks.constructs.storage import bucket_name
from mailroom_stacks.paths import TEMPLATES
from mailroom_stacks.settings.settings import Settings


def templates_bucket(settings: Settings) -> str:
    """The bucket of published versions; "": the stage publishes none."""
    return bucket_name(settings, "templates") if settings.templates.publish else ""


def read_templates(stack: Stack, settings: Settings, keys: str, why: str = "") -> list[Grant]:
    """Reading published versions of templates, or which of them count; `why` the keys are a pattern."""
    if not settings.templates.publish:
        return []
    name = templates_bucket(settings)
    bucket = stack.format_arn(service="s3", region="", account="", resource=name)
    return [
        # Without it a missing object answers 403, as if it were our fault, and not 404.
        Grant(["s3:ListBucket"], [bucket]),
        Grant(["s3:GetObject"], [f"{bucket}/{keys}"], wildcard=why),
    ]


def templates_fields(settings: Settings, folder: str) -> dict[str, Any]:
    """The fields of a function's settings about templates and the attributes that they use. `folder` is where
    its templates are, from the folder of all: a channel's, or "" for all."""
    # On this machine those that people write, and not a copy of them: an edit counts for the next message.
    root = TEMPLATES if settings.is_local else TEMPLATES.relative_to(TEMPLATES.parent)
    return {
        "templates": str(root / folder),
        "templates_bucket": templates_bucket(settings),
        "unknown": settings.items.unknown,
    }
