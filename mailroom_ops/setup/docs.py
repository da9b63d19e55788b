"""The command `docs`: shows the documentation of the installed version in the terminal."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Annotated, NamedTuple

import typer
from rich.markdown import Markdown

from mailroom_ops.shared.screen import Refused, print_answer, print_lines, refusals, screen

_SHIPPED = Path(__file__).parents[1] / "manual"
MANUAL = _SHIPPED if _SHIPPED.is_dir() else Path(__file__).parents[2]
"""Folder of the pages: mailroom_ops/manual in an installed wheel, otherwise the root of the repository."""
FILES = ("*.md", "docs/**/*.md", "docs/reference/*.*")
INDEX = "docs"
"""Name of the page that lists all pages."""
_HEADING = re.compile(r"(#{1,6}) +(.+)")


class Section(NamedTuple):
    """A heading of a page, with the text from there to the next heading of its level or above."""

    page: str
    heading: str
    text: str

    @property
    def word(self) -> str:
        """Argument with which `mailroom docs` shows the section, such as page#heading."""
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", self.heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        return f"{self.page}#{anchor}"


def page_of(link: str) -> str:
    """Return the name of a page: that of its file without the ending, or for a README.md that of its
    folder."""
    path = PurePosixPath(link.lower().lstrip("./"))
    name = path.name.removesuffix(".md")
    return path.parent.name if name == "readme" and path.parent.name else name


@cache
def pages() -> dict[str, Path]:
    """Return the file of each page."""
    files = (file for pattern in FILES for file in sorted(MANUAL.glob(pattern)))
    return {page_of(f"{file.relative_to(MANUAL)}"): file for file in files}


def sections(page: str, text: str) -> Iterator[Section]:
    """Divide a page by its headings. The first section is the whole page."""
    lines, headings, in_block = text.splitlines(), list[tuple[int, int, str]](), False
    for number, line in enumerate(lines):
        in_block ^= line.lstrip().startswith("```")
        if not in_block and (match := _HEADING.fullmatch(line)):
            headings.append((number, len(match[1]), match[2]))
    for first, level, heading in headings or [(0, 1, page)]:
        ends = (number for number, depth, _ in headings if number > first and depth <= level)
        yield Section(page, heading, "\n".join(lines[first : next(ends, None)]))


def find(word: str) -> list[Section]:
    """Return the sections that `word` selects. If it is a page's name or a link to a page, return that page
    or section. Otherwise return all sections with `word` in the heading or, if there are none, the shortest
    section of each page with `word` in the text."""
    files = pages()
    page, _, anchor = word.partition("#")
    if (name := page_of(page)) in files:
        parts = [*sections(name, files[name].read_text())]
        return [part for part in parts if part.word == f"{name}#{anchor}"] if anchor else parts[:1]
    written = re.compile(rf"(?<!\w){re.escape(word)}", re.IGNORECASE)
    texts = {name: file.read_text() for name, file in files.items() if file.suffix == ".md"}
    divided = [[*sections(name, text)] for name, text in texts.items()]
    if matches := [part for parts in divided for part in parts if written.search(part.heading)]:
        return matches
    matching = ([part for part in parts if written.search(part.text)] for parts in divided)
    return [min(parts, key=lambda part: len(part.text)) for parts in matching if parts]


def docs(
    word: Annotated[
        str, typer.Argument(help="A page, a link of a page, or words of a heading or of the text.")
    ] = INDEX,
    *,
    path: Annotated[bool, typer.Option("--path", help="Print the path of the page's file instead.")] = False,
) -> None:
    """Show a page or a section of this version's documentation. Without WORD, it lists the pages.

    If several sections contain the words, the command lists these. Exit code 2: no section contains them.

    Example: mailroom docs keep-codes-fast
    """
    with refusals():
        matches = find(word)
        if not matches:
            raise Refused(f"No page has {word!r}. `mailroom docs` lists the pages.")
    if path:
        print_lines("\n".join({f"{pages()[match.page]}": None for match in matches}))
    else:
        print_answer(matches, _show, as_json=False)


def _show(matches: list[Section]) -> None:
    """Print a section. If there are several, print for each the command that shows it."""
    if len(matches) > 1:
        print_lines("\n".join(f"mailroom docs {match.word}" for match in matches))
    elif (file := pages()[matches[0].page]).suffix == ".md":
        screen.print(Markdown(matches[0].text, hyperlinks=False))  # links name files, not web pages
    else:
        print_lines(file.read_text())
