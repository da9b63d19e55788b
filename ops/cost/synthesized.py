"""A stage's templates, as synth writes them now."""

import json
import os
from typing import Any

from stacks.assemblies import NO_BUNDLES, assembly


def templates(stage: str) -> list[dict[str, Any]]:
    """Synthesize a stage and read its templates; functions are not bundled, for nobody deploys them.

    Raises SettingsError and NagError as `make synth` does.
    """
    os.environ.setdefault("JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION", "true")
    folder = assembly({"stage": stage, **NO_BUNDLES})
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.template.json"))]
