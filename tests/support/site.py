"""Copies the pages to where the site is built from: `make site`. Each page keeps its place, so links from page
to page hold. Links to code lose their target, because the site has no code."""

import re
import shutil
from pathlib import Path

from mailroom_ops.manual import pages
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
            path.write_text(without_links_to_code(file.read_text(), file.parent))


def without_links_to_code(text: str, folder: Path) -> str:
    """Return the text of a page in `folder` with the words alone of each link to code."""

    def linked(link: re.Match[str]) -> str:
        target = (folder / link[2]).resolve()
        return link[0] if target.suffix == ".md" or target.is_relative_to(ROOT / "docs") else link[1]

    return _LINK.sub(linked, text)


if __name__ == "__main__":
    copy()
