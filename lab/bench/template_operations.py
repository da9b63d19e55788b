"""CPU time and memory of renderings in which each operation of MiniJinja gets extreme operands in loops.

A machine draws the templates and their variables, of the largest size that a message may have or of the
largest size that is rendered in a function's own process. Each is rendered in a process of its own.
"""

import json
import os
import random
import re
import resource
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from minijinja import Environment

from lab import size
from mailroom.content.engine import SMALL_VARIABLES_BYTES
from mailroom.content.templates import engine_of
from mailroom.content.variables import values_of
from mailroom.errors import MAX_VARIABLES_BYTES, Invalid
from mailroom.message.message import encode

COUNT = size(4_000, 40)
"""Number of templates that `measure` draws."""
MB = 1024 * 1024


class Cost(NamedTuple):
    """CPU time of a rendering, in all processes, and the memory of the largest of them."""

    seconds: float
    megabytes: float
    result: str


def measure() -> dict[str, Any]:
    """Return the highest values of all drawn templates, and the number of them that were rendered."""
    costs = [cost_of(*drawn(seed)) for seed in range(COUNT)]
    return {
        "template_operations": {
            "templates": len(costs),
            "rendered": sum(cost.result == "rendered" for cost in costs),
            "seconds": max(cost.seconds for cost in costs),
            "megabytes": max(cost.megabytes for cost in costs),
        }
    }


def cost_of(source: str, variables: Mapping[str, Any]) -> Cost:
    """Render a template in a forked process, and return its cost. Raises ChildProcessError if the process
    ended without a result, as a function would have."""
    engine, values = engine_of({"a/body.txt": source}), values_of(variables)
    readable, writable = os.pipe()
    if (process := os.fork()) == 0:
        try:
            os.write(writable, json.dumps(_cost(lambda: engine.render("a/body.txt", values))).encode())
        finally:
            os._exit(0)
    os.close(writable)
    with os.fdopen(readable, "rb") as pipe:
        result = pipe.read()
    _, status = os.waitpid(process, 0)
    if not result:
        raise ChildProcessError(f"{source!r:.300} ended its process with status {status}")
    return Cost(*json.loads(result))


def _cost(render: Callable[[], str]) -> Cost:
    # A rendering that needs this much is without limits of its own.
    resource.setrlimit(resource.RLIMIT_CPU, (10, 10))
    Path("/proc/self/clear_refs").write_text("5")  # the peak of memory begins anew
    before = _peak_bytes()
    try:
        render()
        result = "rendered"
    except Invalid as fault:
        result = f"{fault}"
    parent, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = sum(usage.ru_utime + usage.ru_stime for usage in (parent, children))
    # The largest child has also the memory of this process, from which it was forked.
    peak = max(_peak_bytes(), children.ru_maxrss * 1024)
    return Cost(round(seconds, 2), round((peak - before) / MB, 1), result)


def _peak_bytes() -> int:
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) * 1024


# --- The language

_LISTED = re.findall(r"(?:tests|filters): \[(.*?)\]", Environment().render_str("{{ debug() }}"), re.DOTALL)
TESTS, FILTERS = (re.findall(r'"([a-z]+)"', listed) for listed in sorted(_LISTED, key=len))
METHODS, FUNCTIONS, OPERATORS, NAMES = map(
    str.split,
    (
        "capitalize count endswith find format get isalnum isalpha isascii isdigit islower isnumeric isspace "
        "isupper items join keys lower lstrip replace rfind rstrip split splitlines startswith strip title "
        "upper values",
        "cycler dict joiner namespace range loop.changed loop.cycle",
        "+ - * / // % ** ~ == != < <= > >= in and or",
        "attribute indent width wrapstring length end case_sensitive reverse default by fill_with first "
        "blank leeway killwords break_long_words break_on_hyphens",
    ),
)
"""Methods, functions, operators, and names of operands of filters."""

# --- Operands: each is a variable that grows with `n`, or a fixed one

_TEXTS = {
    "letters": "a",
    "words": "ab ",
    "lines": "\n",
    "digits": "1",
    "path": "0.",
    "keys": "a,",
    "specifiers": "%s",
    "named": "%(a).1s",
    "braces": "{}",
    "wide": "{0:999999}",
    "tags": "<a>",
    "quotes": "'",
    "entities": "&amp;",
    "emoji": "😀",
    "accents": "éß",
    "slashes": "a/",
}
_FORMS: dict[str, Callable[[int], Any]] = {
    "numbers": lambda n: [0] * (n // 2),
    "rows": lambda n: ["a"] * (n // 4),
    "maps": lambda n: [{"a": number} for number in range(n // 12)],
    "pairs": lambda n: [[number, "a"] for number in range(n // 12)],
    "deep": lambda n: _nested(30, [0] * (n // 2)),
    "map": lambda n: {f"k{number}": number for number in range(n // 14)} | {"a": [0] * (n // 8)},
    "options": lambda n: {"attribute": "0." * (n // 4) + "0", "width": 1},
    "patterns": lambda n: ["%(a)s" * 50] * (n // 260),
}
_FIXED = {
    "filter": "tojson",
    "big": 10**9,
    "huge": 2**53,
    "price": 1.5,
    "few": 40,
    "million": 10**6,
    "millions": 10**7,
    "nothing": None,
    "yes": True,
}


def _nested(depth: int, value: Any) -> Any:
    for _ in range(depth):
        value = [value]
    return value


def drawn(seed: int) -> tuple[str, dict[str, Any]]:
    """Return a template and its variables, which together have at most the size that the seed chooses."""
    source, names, limit = drawn_source(seed)
    n = limit
    while (size_now := len(encode(variables := _variables(names, n)).encode())) > limit:
        n = int(n * min(0.95, limit / size_now))
    return source, variables


def drawn_source(seed: int) -> tuple[str, list[str], int]:
    """Return a template, the names of its variables, and their maximum size in bytes."""
    chance = random.Random(seed)
    names = chance.sample([*_TEXTS, *_FORMS, *_FIXED], 4)
    return _statement(chance, names), names, chance.choice((SMALL_VARIABLES_BYTES, MAX_VARIABLES_BYTES))


def _variables(names: list[str], n: int) -> dict[str, Any]:
    texts = {name: text * (n // len(text.encode()) + 1) for name, text in _TEXTS.items() if name in names}
    grown = {name: form(n) for name, form in _FORMS.items() if name in names}
    return {name: (_FIXED | texts | grown)[name] for name in names}


def _statement(chance: random.Random, names: list[str]) -> str:
    carried = [*names, "ns.a", "x"]
    value = _expression(chance, carried if chance.random() < 0.3 else names, chance.choice((1, 1, 2, 3)))
    inner = chance.choice(
        (
            f"{{{{ {value} }}}}",
            f"{{% if {value} %}}{{% endif %}}",
            f"{{% set v = {value} %}}",
            f"{{% for v in {value} %}}{{% break %}}{{% endfor %}}",
            f"{{% set ns.a = {value} %}}",
            "{% set ns.a = [ns.a, ns.a] %}",
        )
    )
    rows = chance.choice(names)
    loop = f"{{% for x in {rows} %}}{inner}{{% endfor %}}"
    recursion = "{% if n %}{{ m([x, x], n - 1) }}{% endif %}"
    loops = chance.choice(
        (
            inner,
            loop,
            f"{{% for x in range(40000) %}}{inner}{{% endfor %}}",
            f"{{% for y in range(200) %}}{loop}{{% endfor %}}",
            f"{{% macro m(x, n) %}}{inner}{recursion}{{% endmacro %}}{{{{ m({rows}, 40) }}}}",
        )
    )
    namespace = f"{{% set ns = namespace(a={chance.choice(names)}) %}}" if "ns." in loops else ""
    return f"{namespace}{{% set x = 1 %}}{loops}" + "{{ ns.a }}" * bool(namespace)


def _expression(chance: random.Random, names: list[str], depth: int) -> str:
    """Return an expression of one operation of the language, whose operands are variables or, up to `depth`,
    other operations."""

    def operand() -> str:
        if depth > 1 and chance.random() < 0.4:
            return f"({_expression(chance, names, depth - 1)})"
        return chance.choice((*names, *names, *names, "'a'", "0", "''"))

    def operands() -> str:
        positional = [operand() for _ in range(chance.choice((0, 0, 1, 1, 2)))]
        keywords = [f"{name}={operand()}" for name in chance.sample(NAMES, chance.choice((0, 0, 1, 2)))]
        splat = [f"**{operand()}"] if chance.random() < 0.05 else []
        return ", ".join((*positional, *keywords, *splat))

    draw = chance.choice
    filtered = lambda: f"{operand()}|{draw(FILTERS)}({operands()})"  # noqa: E731 - each line is a form
    forms: tuple[Callable[[], str], ...] = (
        *(filtered, filtered, filtered, filtered),
        lambda: f"{operand()}|map({draw(FILTERS)!r}, {operands()})|list",
        lambda: f"{operand()} is {draw(TESTS)}({operand()})",
        lambda: f"{operand()}.{draw(METHODS)}({operands()})",
        lambda: f"{draw(FUNCTIONS)}({operands()})",
        lambda: f"{operand()} {draw(OPERATORS)} {operand()}",
    )
    return draw(forms)()
