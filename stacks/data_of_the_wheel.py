"""hatchling's part that puts data into the wheel: the handlers, which mailroom_stacks bundles, and the pages
of `mailroom docs`."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLACES = {
    "lambdas": ("mailroom_stacks/lambdas", ("*.py", "requirements/*.txt")),
    ".": ("mailroom_ops/manual", ("*.md", "docs/**/*.md", "docs/reference/*.*")),
}
"""Where files lie in the wheel, by their folder, and which."""


class Data(BuildHookInterface):  # type: ignore[type-arg]
    """A hook, because hatchling's `sources` cannot take the library out of the folder that both lie in, and
    pages lie beside pictures, which the wheel leaves out."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the files; an editable install finds them where they are."""
        if version == "standard":
            for folder, (place, patterns) in PLACES.items():
                root = Path(self.root, folder)
                for file in (file for pattern in patterns for file in root.glob(pattern)):
                    build_data["force_include"][str(file)] = f"{place}/{file.relative_to(root)}"
