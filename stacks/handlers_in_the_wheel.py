"""hatchling's part that puts the handlers into the wheel: as data of mailroom_stacks, which bundles them."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Handlers(BuildHookInterface):  # type: ignore[type-arg]
    """A hook, because hatchling's `sources` cannot take the library out of the folder that both lie in."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the files; an editable install finds them where they are."""
        if version == "standard":
            lambdas = Path(self.root, "lambdas")
            for file in (*lambdas.glob("*.py"), *lambdas.glob("requirements/*.txt")):
                build_data["force_include"][str(file)] = f"mailroom_stacks/{file.relative_to(self.root)}"
