"""Channels of the project, for processes that know every channel: commands, and the local stage."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from mailroom.channels import OWN_CHANNELS
from mailroom_stacks.paths import CDK_JSON, PROJECT


def announce() -> None:
    """Let this process and its children find the channels for which stages of cdk.json name a module. Must be
    called before the table of channels is imported. A cdk.json that cannot be read has no channels here;
    commands that need the file report its fault."""
    with suppress(OSError, ValueError, LookupError, TypeError, AttributeError):
        stages = json.loads(CDK_JSON.read_text())["context"]["mailroom"]
        if modules := dict(_modules(stages)):
            os.environ[OWN_CHANNELS] = json.dumps(modules)
            sys.path.append(str(PROJECT))
            os.environ["PYTHONPATH"] = os.pathsep.join(
                filter(None, (os.environ.get("PYTHONPATH"), str(PROJECT)))
            )


def _modules(stages: Any) -> Iterator[tuple[str, str]]:
    for stage in stages.values():
        for name, row in stage.get("channels", {}).items():
            if module := row.get("module"):
                yield name, module
