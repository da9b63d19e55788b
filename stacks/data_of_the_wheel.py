"""Build hook of hatchling, which adds data files to the wheel: the handlers that mailroom_stacks bundles, the
pages of `mailroom docs`, and the lock of a project folder."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLACES = (
    ("lambdas", "mailroom_stacks/lambdas", ("*.py", "requirements/*.txt")),
    (".", "mailroom_ops/manual", ("*.md", "docs/**/*.md", "docs/reference/*.*")),
    (".", "mailroom_ops/setup", ("requirements.txt",)),
)
"""Folder in the repository, folder in the wheel, and glob patterns of the files to add."""


class Data(BuildHookInterface):  # type: ignore[type-arg]
    """Hook that adds the files of PLACES to the wheel. Hatchling's option `sources` is not enough: it cannot
    separate the handlers from the library in the same folder, nor leave out the pictures beside the pages."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files to the wheel. An editable install reads them from the repository, and needs no
        copies."""
        if version == "standard":
            for folder, place, patterns in PLACES:
                root = Path(self.root, folder)
                for file in (file for pattern in patterns for file in root.glob(pattern)):
                    build_data["force_include"][str(file)] = f"{place}/{file.relative_to(root)}"
