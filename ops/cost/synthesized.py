"""A stage's templates, as synth writes them now."""

import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any


def templates(stage: str) -> list[dict[str, Any]]:
    """Synthesize a stage and read its templates; functions are not bundled, for nobody deploys them.

    Raises SettingsError and NagError as `make synth` does.
    """
    os.environ.setdefault("JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION", "true")
    # The CDK's packages take seconds to import, which who does not count need not wait for.
    from stacks.application import synthesize

    context: dict[str, object] = {"stage": stage, "aws:cdk:bundling-stacks": []}
    with TemporaryDirectory(prefix="mailroom-cost-") as folder:
        synthesize(context, folder)
        return [json.loads(path.read_text()) for path in sorted(Path(folder).glob("*.template.json"))]
