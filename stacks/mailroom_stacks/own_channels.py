"""Makes the project's own channels importable in processes that use every channel: commands, and the local
stage."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from mailroom.channels import OWN_CHANNELS
from mailroom_stacks.paths import CDK_JSON, PROJECT


def announce() -> None:
    """Set the environment and import path so that this process and its children find the modules that stages
    of cdk.json name for their channels. Must be called before the module `contracts` is imported. If cdk.json
    is invalid, the function does nothing; commands that need the file report the error."""
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
