"""The campaigns of this repository, and the stages that cdk.json enables them in."""

import json
import tomllib
from pathlib import Path
from typing import Any

from ops.screen import Refused
from stacks.merging import merged
from stacks.paths import CAMPAIGN_FILE, ROOT


class CampaignFiles:
    """The folder `campaigns/` and the stages of cdk.json, both below `root`. They are what was checked out
    here: a stage may have been deployed from another version."""

    def __init__(self, root: Path | None = None) -> None:
        self._root = root or ROOT

    @property
    def templates(self) -> Path:
        """The folder of templates, by channel."""
        return self._root / "templates"

    def names(self) -> list[str]:
        """The campaigns there are."""
        return sorted(path.parent.name for path in self._root.glob(f"campaigns/*/{CAMPAIGN_FILE}"))

    def read(self, name: str) -> dict[str, Any]:
        """A campaign's settings, unchecked: synth does that. Raises Refused."""
        if name not in self.names():
            raise Refused(f"There is no campaign {name!r}; there are: {_listed(self.names())}.")
        try:
            return tomllib.loads((self._root / "campaigns" / name / CAMPAIGN_FILE).read_text())
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise Refused(f"campaigns/{name}/{CAMPAIGN_FILE} cannot be read: {error}.") from None

    def of_stage(self, name: str, stage: str) -> dict[str, Any]:
        """The same with what cdk.json has otherwise in that stage. Raises Refused."""
        overrides = self.stage(stage).get("campaigns", {}).get("overrides", {})
        return merged(self.read(name), overrides.get(name, {}))

    def stage(self, stage: str) -> dict[str, Any]:
        """A stage's settings, unchecked. Raises Refused."""
        stages: dict[str, Any] = json.loads((self._root / "cdk.json").read_text())["context"]["mailroom"]
        if stage not in stages:
            raise Refused(f"There is no stage {stage!r} in cdk.json; there are: {_listed(list(stages))}.")
        return dict(stages[stage])

    def enabled(self, stage: str) -> list[str]:
        """The campaigns that a stage has. Raises Refused."""
        return list(self.stage(stage).get("campaigns", {}).get("enabled", []))

    def check(self, name: str, stage: str) -> None:
        """Raise Refused unless the stage has that campaign."""
        self.read(name)
        enabled = self.enabled(stage)
        if name not in enabled:
            raise Refused(
                f"{name} is not enabled in {stage}; there: {_listed(enabled)}. "
                f"Add it to mailroom.{stage}.campaigns.enabled in cdk.json and deploy."
            )


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "none"
