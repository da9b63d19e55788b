"""Sources of templates: finds the tags in them, and what MiniJinja cannot list or limit."""

import re
from collections.abc import Iterator

from msgspec import Struct

_TEXT = r""""(?:\\.|[^"\\])*+"|'(?:\\.|[^'\\])*+'"""
_TEXTS = re.compile(_TEXT, re.DOTALL)
_OPENING = re.compile(r"\{[{%#]")
_RAW = r"\{%[-+]?\s*+raw\s*+[-+]?%\}"
_BRACES = rf"\{{(?:{_TEXT}|[^\"'{{}}]|\{{(?:{_TEXT}|[^\"'{{}}])*+\}})*+\}}"
_TAG = re.compile(
    rf"\{{#.*?#\}}|{_RAW}.*?\{{%[-+]?\s*+endraw\s*+[-+]?%\}}"
    rf"|(\{{\{{(?:{_TEXT}|{_BRACES}|[^\"'}}]|\}}(?!\}}))*+\}}\}}"
    rf"|(?!{_RAW})\{{%(?:{_TEXT}|[^\"'%]|%(?!\}}))*+%\}})",
    re.DOTALL,
)
"""Pattern of a comment, of a raw block, or of a tag with code, which is group 1."""
_NAMES = {
    "filter": re.compile(r"(?:\||^\{%[-+]?\s*filter\s)\s*([A-Za-z_]\w*)"),
    "test": re.compile(r"(?<!\.)\bis\s+(?:not\s+)?([A-Za-z_]\w*)"),
}
_REFERENCE = re.compile(r"\{%[-+]?\s*(?:extends|include|import|from)\b(.*?)[-+]?%\}", re.DOTALL)
_CONDITION = re.compile(r"\bif\b.*?\belse\b", re.DOTALL)
_AFTER_REFERENCE = re.compile(r"\s(?:import|as|ignore|with|without)\s")
_PATH = rf"[A-Za-z_]\w*+(?:\s*+\.\s*+\w+|\s*+\[(?:{_TEXT}|[-\w.]+)\])*+"
_FILTERED = re.compile(
    rf"({_TEXT}|\|\s*\w+|(?<!\.)\bis\s+(?:not\s+)?\w+|^\{{%[-+]?\s*(?:filter|set)\s+\w+\s*+(?!=))"
    rf"|(?<![\w.\])])({_PATH})(?=\s*\|\s*+(?!d\b|default\b))",
    re.DOTALL,
)
"""Pattern whose group 2 is a variable before a filter other than `default`. Group 1 is a string literal, a
filter, a test or a block's name, which only look like a variable."""
_MACRO = re.compile(r"\bmacro\s+(\w+)(.*?)\bendmacro\b", re.DOTALL)
_GROWING = re.compile(r"\b(?:namespace|recursive|self|tojson|map\s*\((?!\s*(?:[\"']|attribute\b)))")
"""Constructs by which a value can contain another one many times, or become a very long text: a namespace, a
loop or a block that calls itself, the indentation of `tojson`, and a filter whose name is a variable."""


class Reference(Struct, frozen=True):
    """Tag that refers to other templates."""

    tag: str
    """The expression in the tag, as a tag that writes its value."""
    names: list[str]
    """Names of templates that are string literals in the expression."""
    open: bool
    """Whether a variable is a part of the name. A condition that chooses one of several literals does not
    count."""
    line: int


def strict(source: str) -> str:
    """Return a source in which a missing variable before any filter other than `default` makes the rendering
    fail.

    MiniJinja reports the name if a missing variable is used in an expression such as `a ~ ''`. But some
    filters treat a missing variable as empty, and others do not report its name.
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
    """Yield the filters and tests in a source: each with the kind (`filter` or `test`), the name and the
    line."""
    for code, line in _code(source):
        for kind, pattern in _NAMES.items():
            for name in pattern.findall(code):
                yield kind, name, line


def grows(source: str) -> bool:
    """Return whether a value of a template may contain another value many times over, which takes more work
    than fuel counts: by one of _GROWING, or by a macro that calls itself."""
    code = "\n".join(tag[1] for tag in _tags(source))
    macros = _MACRO.findall(code)
    names = [name for name, _ in macros]
    # A macro that calls itself, directly or by another macro, calls itself or a macro below it.
    calls = any({*names[place:]} & {*re.findall(r"\w+", body)} for place, (_, body) in enumerate(macros))
    return calls or _GROWING.search(code) is not None


def _code(source: str) -> Iterator[tuple[str, int]]:
    """Yield the code of the tags in a source, in which `""` replaces each string literal, with the line of
    each tag."""
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
            line = source.count("\n", 0, tag.start()) + 1
            yield Reference(f"{{{{ {expression} }}}}", names, is_open, line)


def _tags(source: str) -> Iterator[re.Match[str]]:
    """Yield the tags with code, up to the first tag without an end, which MiniJinja refuses. Each character
    is read only once."""
    end = 0
    while (opening := _OPENING.search(source, end)) and (tag := _TAG.match(source, opening.start())):
        end = tag.end()
        if tag[1]:
            yield tag
