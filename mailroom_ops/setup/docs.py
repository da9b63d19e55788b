"""The command `docs`: shows a page of the installed version's documentation in the terminal."""

from pathlib import Path, PurePosixPath
from typing import Annotated

import typer
from rich.markdown import Markdown

from mailroom_ops.shared.screen import Refused, print_answer, print_line, print_lines, refusals, screen

_SHIPPED = Path(__file__).parents[1] / "manual"
MANUAL = _SHIPPED if _SHIPPED.is_dir() else Path(__file__).parents[2]
"""Folder of the pages: mailroom_ops/manual in an installed wheel, otherwise the root of the repository."""
FILES = ("*.md", "docs/**/*.md", "docs/reference/*.*")
INDEX = "docs"
"""Name of the page that lists all pages."""


def name_of(link: str) -> str:
    """Return the name of the page in a link: that of its file without .md, or for a README.md that of its
    folder."""
    path = PurePosixPath(link.partition("#")[0].lower().lstrip("./"))
    name = path.name.removesuffix(".md")
    return path.parent.name if name == "readme" and path.parent.name else name


def pages() -> dict[str, Path]:
    """Return the file of each page."""
    files = (file for pattern in FILES for file in sorted(MANUAL.glob(pattern)))
    return {name_of(f"{file.relative_to(MANUAL)}"): file for file in files}


def docs(
    page: Annotated[str, typer.Argument(help="The page: the name of its file, or a link to it.")] = INDEX,
    *,
    path: Annotated[bool, typer.Option("--path", help="Print the path of the page's file instead.")] = False,
) -> None:
    """Show a page of the documentation.

    It is the documentation of this version. Without PAGE, the command lists the pages. Long pages are shown
    by the pager, in which / searches for words. Exit code 2: no page has this name.

    Example: mailroom docs keep-codes-fast
    """
    with refusals():
        file = pages().get(name_of(page))
        if file is None:
            raise Refused(f"There is no page {page!r}. `mailroom docs` lists the pages.")
    if path:
        print_line(f"{file}")
    else:
        print_answer(file, _show, as_json=False)


def _show(file: Path) -> None:
    if file.suffix == ".md":
        screen.print(Markdown(file.read_text(), hyperlinks=False))  # links name files, not web pages
    else:
        print_lines(file.read_text())
