"""Sources of templates: finds the tags in them, and what MiniJinja cannot list or limit."""

import re
from collections.abc import Iterator
from itertools import repeat

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
_WORD = re.compile(r'\w+|""|\*\*|\S')
_FILTERS, _METHODS, _CALLS = map(
    str.split,
    (
        "abs attr batch bool capitalize chain count d default dictsort e escape filesizeformat first float "
        "format groupby indent int items join last length lines list lower map max min pluralize reject "
        "rejectattr replace reverse round safe select selectattr slice sort split string striptags sum title "
        "trim truncate unique upper urlencode wordwrap zip",
        "capitalize changed count cycle endswith find format get isalnum isalpha isascii isdigit islower "
        "isnumeric isspace isupper items join keys lower lstrip replace rfind rstrip split splitlines "
        "startswith strip title upper values",
        "call caller cycler dict joiner macro range super and elif else if in is not or",
    ),
)
"""Filters, methods and functions whose work is small if their operands are, and words that may precede a
bracket."""
_COSTLY = re.compile(
    r"\*|\b(?:namespace|recursive|self|wrapstring)\b|(?<!\"\")\s*\.\s*format\s*\(|\bcaller\b(?!\s*\(\s*\))"
)
"""Code whose work may be large even if the operands are small: a repeated list, a value that contains itself
or another value many times, a long text between lines, and a pattern from a variable."""
_CHEAP_MAP = re.compile(
    r"\bmap\s*\(\s*(?:attribute\s*=|([\"'])(?:abs|capitalize|default|e|escape|first|float|int|join|last|length"
    r"|lower|replace|round|string|title|trim|truncate|upper|urlencode)\1\s*[,)])"
)


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


def is_cheap(source: str) -> bool:
    """Return whether a template has only operations whose work is small if its variables are small and its
    fuel is little. Whatever is not known to be cheap counts as expensive, such as a new filter of MiniJinja,
    or a call of a macro above its end, which may be a recursion."""
    calls, macro = {*_CALLS}, ""
    for tag in _tags(source):
        code = _TEXTS.sub('""', tag[1])
        words = ["", *_WORD.findall(code.strip("{%}-+")), "", ""]
        statement = words[1] if code.startswith("{%") else ""
        new_calls = {"import": {f"{words[-3]}."}, "from": {*words}, "endmacro": {macro}}
        calls |= new_calls.get(statement, set())
        # A tag with maps that are nested too deeply for _TAG ends too early: its rest was not examined.
        if (statement == "macro" and macro) or code[2:-2].count("{") != code[2:-2].count("}"):
            return False
        if statement in ("macro", "endmacro"):
            macro = words.pop(2)
        maps = len(re.findall(r"\bmap\b", code))
        if _COSTLY.search(code) or maps > len(_CHEAP_MAP.findall(tag[1])):
            return False
        if not all(map(_is_cheap, repeat(calls), ["", *words], words, words[1:], words[2:])):
            return False
    return True


def _is_cheap(calls: set[str], second: str, before: str, word: str, after: str) -> bool:
    """Return whether a word of a tag is a cheap operation or none. `second` and `before` are the two words
    before it, `after` is the one after it, and `calls` are the names of functions and macros."""
    if before in ("|", "filter"):
        return word in _FILTERS
    if after != "(" or not word.isidentifier() or before in ("is", "not"):
        return True
    if before == ".":
        return word in _METHODS or f"{second}." in calls
    return word in calls


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
