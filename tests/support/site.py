"""Copies the pages to the folder from which `make site` builds. Pages keep their places, so links between
pages hold. Links to code lose their target, because the site does not show code."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from mailroom_ops.setup.docs import pages
from tests.support import ROOT

PAGES = ROOT / ".local" / "site" / "pages"
"""Folder of the copies, which mkdocs.yml names."""
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s:#]+)(#[^)\s]+)?\)")


def copy(folder: Path = PAGES) -> None:
    """Write all pages, and the files beside them, to an emptied folder."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs", folder / "docs")
    for file in pages().values():
        if file.suffix == ".md":
            path = folder / file.relative_to(ROOT)
            path.write_text(without_links_to_code(indented(file.read_text()), file.parent))


def indented(text: str) -> str:
    """Return a page with what belongs to an entry of a list indented by four spaces. Python's Markdown takes
    fewer for the end of the list."""

    def shifted() -> Iterator[str]:
        in_block, shift = False, ""
        for line in text.split("\n"):
            if line.startswith("```"):
                in_block = not in_block
            elif not in_block and (marker := re.match(r"(?:-|\d+\.) ", line)):
                shift = " " * (4 - len(marker[0]))
            yield shift + line if line.startswith("  ") and not in_block else line

    return "\n".join(shifted())


def without_links_to_code(text: str, folder: Path) -> str:
    """Return the text of a page in `folder` with the words alone of each link to code."""

    def linked(link: re.Match[str]) -> str:
        target = (folder / link[2]).resolve()
        return link[0] if target.suffix == ".md" or target.is_relative_to(ROOT / "docs") else link[1]

    return _LINK.sub(linked, text)


if __name__ == "__main__":
    copy()
