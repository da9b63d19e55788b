"""Reads the documentation: pages with their code blocks, headings, links and commands."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from textwrap import dedent

from tests.support import ROOT

_FENCE = re.compile(r"^(?P<indent> *)```(?P<kind>\w*)\n(?P<text>.*?)^(?P=indent)```\n?", re.M | re.S)
_HEADING = re.compile(r"^#{1,6} +(?P<text>.+?) *$", re.M)
_LINK = re.compile(r"\[[^\]\n]*(?:\n[^\]\n]*)?\]\((?P<target>[^)\s]+)\)")
_SPAN = re.compile(r"`(?P<text>[^`\n]+(?:\n[^`\n]+)?)`")


@dataclass(frozen=True)
class Block:
    """A fenced block; `kind` is the word after the opening fence.

    `text` is not indented, even if the block is in a list.
    """

    page: str
    kind: str
    text: str


@dataclass(frozen=True)
class Page:
    """A page of the documentation, with its path in the repository."""

    path: str

    @property
    def text(self) -> str:
        """Return the whole text of the page."""
        return (ROOT / self.path).read_text()

    @property
    def prose(self) -> str:
        """Return the text of the page without its code blocks."""
        return _FENCE.sub("", self.text)

    def blocks(self, *kinds: str) -> Iterator[Block]:
        """Return the code blocks of the given kinds."""
        for found in _FENCE.finditer(self.text):
            if found["kind"] in kinds:
                yield Block(self.path, found["kind"], dedent(found["text"]))

    def anchors(self) -> set[str]:
        """Return the anchors that links to this page may use, in the form that GitHub makes of headings."""
        seen: dict[str, int] = {}
        anchors = set()
        for heading in _HEADING.finditer(self.prose):
            words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading["text"]).lower()
            slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
            count = seen.get(slug, 0)
            seen[slug] = count + 1
            anchors.add(f"{slug}-{count}" if count else slug)
        return anchors

    def links(self) -> Iterator[str]:
        """Return the targets of the page's links."""
        return (found["target"] for found in _LINK.finditer(_SPAN.sub("``", self.prose)))

    def spans(self) -> Iterator[str]:
        """Return the texts in backticks, each on one line."""
        return (" ".join(found["text"].split()) for found in _SPAN.finditer(self.prose))

    def command_lines(self) -> Iterator[list[str]]:
        """Return the commands of the page's shell blocks, split into words."""
        for block in self.blocks("sh"):
            for line in block.text.replace("\\\n", " ").splitlines():
                if line.partition(" #")[0].count("'") % 2:
                    continue  # The first or last line of a JSON text.
                yield from _piped(shlex.split(line, comments=True))


def _piped(words: list[str]) -> Iterator[list[str]]:
    command: list[str] = []
    for word in words:
        if word in {"|", "&&", ";"}:
            yield command
            command = []
        elif word in {">", ">>", "<"}:
            break
        else:
            command.append(word)
    yield command


@cache
def docs_pages() -> tuple[Page, ...]:
    """Return every page of the documentation."""
    files = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    return tuple(Page(str(file.relative_to(ROOT))) for file in sorted(files))
