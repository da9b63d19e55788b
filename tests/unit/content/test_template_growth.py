"""Whatever a template may use: twice the input makes less than three times the work, or is refused."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from mailroom.content.sandbox import FILTERS, METHODS, TESTS
from mailroom.content.templates import Templates
from mailroom.errors import Invalid
from tests.support.fuzz.work import SHORT, seconds
from tests.support.unit.shelf import Shelf

SIZE = 30_000
"""Characters of a text, entries of a list and names of a map: about what an item holds. What was quadratic
would take seconds."""
ARGUMENTS = {
    "batch": "3",
    "center": "n",
    "format": "1",
    "groupby": "'x'",
    "indent": "2",
    "map": "'string'",
    "replace": "'a', 'b'",
    "reject": "'none'",
    "rejectattr": "'x'",
    "select": "'defined'",
    "selectattr": "'x'",
    "truncate": "n - 9",
    "wordwrap": "60",
    "int": "0, 16",
    "default": "other",
    "join": "'-'",
    "divisibleby": "7",
    "sameas": "other",
    "in": "other",
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">=", "eq", "ne", "lt", "le", "gt", "ge"), "other"),
    **dict.fromkeys(("equalto", "greaterthan", "lessthan"), "other"),
    **dict.fromkeys(("count", "endswith", "find", "index", "startswith", "removeprefix"), "'ab'"),
    **dict.fromkeys(("removesuffix", "partition"), "'ab'"),
    **dict.fromkeys(("ljust", "rjust", "zfill"), "n"),
    "get": "'x'",
}
OPERATORS = ("+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", "in", "not in", "and", "or")
SOURCES = {
    **{
        f"filter {name}": f"{{{{ (value|{name}({ARGUMENTS.get(name, '')}))|string|length }}}}"
        for name in FILTERS
    },
    **{
        f"test {name}": f"{{{{ value is {name}({ARGUMENTS[name]}) }}}}"
        if name in ARGUMENTS
        else f"{{{{ value is {name} }}}}"
        for name in TESTS
        if name.isalpha()
    },
    **{
        f"method {name}": f"{{{{ value.{name}({ARGUMENTS.get(name, '')})|string|length }}}}"
        for name in METHODS
    },
    "method join": "{{ ','.join(value)|length }}",
    **{f"operator {each}": f"{{{{ (value {each} other)|string|length }}}}" for each in OPERATORS},
    "a slice": "{{ value[1:]|string|length }}",
    "a loop": "{% for each in value %}{{ each }}{% endfor %}",
}


def values(size: int) -> dict[str, Any]:
    """Inputs of a size, of each kind that an item has."""
    return {
        "text": "ab" * (size // 2),
        "words": "ab cd " * (size // 6),
        "digits": "7" * size,
        "list": ["ab"] * (size // 10),
        "numbers": list(range(size // 10)),
        "maps": [{"x": each} for each in range(size // 20)],
        "map": {f"k{each}": each for each in range(size // 20)},
    }


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_twice_the_input_makes_less_than_three_times_the_work(name: str, tmp_path: Path) -> None:
    Shelf(tmp_path).put("a", subject="Hi", text=SOURCES[name])
    templates = Templates(tmp_path)
    one, two = values(SIZE), values(2 * SIZE)

    def render(kind: str, given: dict[str, Any]) -> None:
        size = len(given["text"])
        with suppress(Invalid):  # by the budget, or because the operation is not for such a value
            templates.render("a", {"value": given[kind], "other": given[kind], "n": size})

    for kind in one:
        much = seconds(lambda kind=kind: render(kind, two))  # type: ignore[misc]
        if much > SHORT:
            little = seconds(lambda kind=kind: render(kind, one), 3)  # type: ignore[misc]
            much = seconds(lambda kind=kind: render(kind, two), 3)  # type: ignore[misc]
            assert much < SHORT or much < 3 * little, f"{kind}: {little:.3f} s, then {much:.3f} s"
