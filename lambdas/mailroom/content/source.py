"""The source of a template: its file, its tags, and the names in them, which MiniJinja does not list."""

import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

_TEXT = r""""(?:\\.|[^"\\])*+"|'(?:\\.|[^'\\])*+'"""
_TEXTS = re.compile(_TEXT, re.DOTALL)
_OPENING = re.compile(r"\{[{%#]")
_RAW = r"\{%[-+]?\s*+raw\s*+[-+]?%\}"
_TAG = re.compile(
    rf"\{{#.*?#\}}|{_RAW}.*?\{{%[-+]?\s*+endraw\s*+[-+]?%\}}"
    rf"|(\{{\{{(?:{_TEXT}|[^\"'}}]|\}}(?!\}}))*+\}}\}}|(?!{_RAW})\{{%(?:{_TEXT}|[^\"'%]|%(?!\}}))*+%\}})",
    re.DOTALL,
)
"""A comment, a raw block, or, as group 1, a tag with code."""
_NAMES = {
    "filter": re.compile(r"(?:\||^\{%[-+]?\s*filter\s)\s*([A-Za-z_]\w*)"),
    "test": re.compile(r"\bis\s+(?:not\s+)?([A-Za-z_]\w*)"),
}
_FROM_VARIABLES = {
    "an attribute": re.compile(r'\battribute\s*=\s*+(?!"")'),
    "an indentation": re.compile(r"\btojson\s*\(\s*+(?:indent\s*=\s*+)?+(?![\d)])"),
    "a pattern of format": re.compile(r'(?<!"")\.format\s*\('),
}
"""Arguments of which no fuel bounds the cost, if a producer's variable gives them; in code without texts."""
_REFERENCE = re.compile(r"\{%[-+]?\s*(?:extends|include|import|from)\b(.*?)[-+]?%\}", re.DOTALL)
_CONDITION = re.compile(r"\bif\b.*?\belse\b", re.DOTALL)
_AFTER_REFERENCE = re.compile(r"\s(?:import|as|ignore|with|without)\s")
_FILTERED = re.compile(
    rf"({_TEXT}|\|\s*\w+|\bis\s+(?:not\s+)?\w+|^\{{%[-+]?\s*(?:filter|set)\s+\w+)"
    rf"|(?<![\w.\])])([A-Za-z_]\w*+(?:\.\w+|\[(?:{_TEXT}|\w+)\])*+)(?=\s*\|\s*+(?!d\b|default\b))",
    re.DOTALL,
)
"""Group 2 is a variable before a filter other than `default`; group 1 is a text, a filter, a test or the name
of a block, which may look like a variable."""


class Reference(Struct, frozen=True):
    """A tag that names other templates."""

    tag: str
    """The expression of the tag, as a tag that writes it."""
    names: list[str]
    """Names that are written out."""
    open: bool
    """Whether a variable is part of the name. It may choose among names that are written out."""


def read_source(path: Path) -> str:
    """Read the file of a template, without a byte order mark and with `\\n` as line ends. Raises OSError and
    UnicodeDecodeError."""
    return path.read_text(encoding="utf-8-sig")


def strict(source: str) -> str:
    """Return a source in which a missing variable fails a rendering before any filter but `default`.

    MiniJinja fails a use of a missing variable with its name, as in `a ~ ''`. But some of its filters take
    the variable for an empty one, and others do not name it.
    """

    def checked(match: re.Match[str]) -> str:
        other, name = match.groups()
        return other or f"({name} if {name} is defined else {name} ~ '')"

    pieces, end = list[str](), 0
    for tag in _tags(source):
        pieces += source[end : tag.start()], _FILTERED.sub(checked, tag[1])
        end = tag.end()
    return "".join((*pieces, source[end:]))


def used(source: str) -> Iterator[tuple[str, str, int]]:
    """Yield the filters and tests of a source: `filter` or `test`, its name, and its line."""
    for code, line in _code(source):
        for kind, pattern in _NAMES.items():
            for name in pattern.findall(code):
                yield kind, name, line


def from_variables(source: str) -> Iterator[tuple[str, int]]:
    """Yield what a source takes from a variable and has to write out, because a producer could make it cost
    any time or memory; with its line."""
    for code, line in _code(source):
        if any(reference.open for reference in references(code)):
            yield "the name of a part", line
        for argument, pattern in _FROM_VARIABLES.items():
            if pattern.search(code):
                yield argument, line


def _code(source: str) -> Iterator[tuple[str, int]]:
    """Yield the tags of a source, with `""` for each text, and their lines."""
    line, end = 1, 0
    for tag in _tags(source):
        line += source.count("\n", end, tag.start())
        end = tag.start()
        yield _TEXTS.sub('""', tag[1]), line


def references(source: str) -> Iterator[Reference]:
    """Yield the references of a source to other templates."""
    for tag in _tags(source):
        if match := _REFERENCE.fullmatch(tag[1]):
            blank = _TEXTS.sub(lambda text: "\0" * len(text[0]), f"{match[1]} ")
            expression = match[1][: len(_AFTER_REFERENCE.split(blank, maxsplit=1)[0])]
            names = [text[1:-1] for text in _TEXTS.findall(expression)]
            is_open = re.search(r"\w", _CONDITION.sub("", _TEXTS.sub('""', expression))) is not None
            yield Reference(f"{{{{ {expression} }}}}", names, is_open)


def _tags(source: str) -> Iterator[re.Match[str]]:
    """Yield the tags with code, up to the first that has no end, which MiniJinja refuses: each character is
    read once."""
    end = 0
    while (opening := _OPENING.search(source, end)) and (tag := _TAG.match(source, opening.start())):
        end = tag.end()
        if tag[1]:
            yield tag
