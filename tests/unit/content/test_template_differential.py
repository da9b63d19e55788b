"""Random legal templates have the same text in MiniJinja alone as with everything that Mailroom adds to it:
its maps and lists, the check of missing variables, and the processes of expensive renderings."""

import random
import re
from typing import Any

import pytest
from minijinja import Environment, TemplateError

from mailroom.content.engine import SMALL_VARIABLES_BYTES, TemplateFault, _written, _written_as_html
from mailroom.content.templates import engine_of
from mailroom.content.variables import values_of

COUNT = 150
FILTERS = {
    "text text": "capitalize lower upper title trim trim(TEXT) format(TEXT) replace(TEXT,TEXT) "
    "truncate(length=9) indent(2) urlencode e escape safe string striptags wordwrap(width=9) reverse "
    "default(TEXT) d(TEXT)",
    "text words": "split split(TEXT) lines list",
    "text number": "length count int(0) float(0)",
    "words words": "sort unique reverse list batch(3) slice(3) map('upper') map('replace','a',TEXT) select "
    "select('in',WORDS) reject('eq',TEXT) zip(WORDS) chain(WORDS)",
    "words text": "join join(TEXT) first last min max string tojson pprint",
    "words number": "length count",
    "rows rows": "sort(attribute='a') sort(attribute=NAME) unique(attribute='a') selectattr('a') "
    "rejectattr('b','eq',NUMBER) reverse list",
    "rows words": "map(attribute='a') map(attribute=NAME) groupby('a') groupby(NAME,default='') "
    "map('tojson')",
    "rows number": "sum(attribute='b') length",
    "rows text": "tojson pprint string join",
    "map map": "default(MAP)",
    "map text": "tojson pprint string join(TEXT)",
    "map words": "items dictsort dictsort(by='value') list",
    "map number": "length count attr('a1') bool",
    "number number": "abs round round(1) int float",
    "number text": "string filesizeformat pluralize tojson pprint",
}
"""Filters of the template language, by the kinds of their input and output."""
WAYS = [(*kinds.split(), use) for kinds, uses in FILTERS.items() for use in uses.split()]
KINDS = ("text", "words", "rows", "map", "number")


def variables_of(chance: random.Random) -> dict[str, Any]:
    letters = chance.choice(("ab ", "é\n", "😀", "<&", "a,b.c", "%s", "{}"))
    rows = [{"a": letters, "b": 1.5}, {"a": "x", "b": 2}, {"a": "x", "b": 7}]
    return {
        "text": letters * chance.choice((0, 1, 9)),
        "words": [f"{letters}{number}" for number in range(chance.choice((0, 1, 5)))],
        "rows": rows[: chance.randint(0, 3)],
        "map": {f"a{number}": number for number in range(1, chance.choice((2, 9)))},
        "number": chance.choice((0, 3, 1000, 2.5, 10**9)),
        "name": chance.choice("ab"),
    }


def random_statements(chance: random.Random, depth: int) -> str:
    return "".join(statement(chance, depth) for _ in range(chance.randint(1, 3)))


def statement(chance: random.Random, depth: int) -> str:
    if depth == 0 or chance.random() < 0.4:
        return f"{{{{ {expression(chance, chance.choice(KINDS), 2)} }}}}"
    inner = random_statements(chance, depth - 1)
    return chance.choice(
        (
            f"{{% for text in {expression(chance, 'words', 2)} %}}{inner}{{% endfor %}}",
            f"{{% for map in {expression(chance, 'rows', 1)} %}}{inner}{{% endfor %}}",
            f"{{% if {expression(chance, 'text', 2)} in {expression(chance, 'words', 2)} %}}{inner}"
            "{% endif %}",
            f"{{% if {expression(chance, 'map', 1)} == map %}}{inner}{{% endif %}}",
            f"{{% set text = {expression(chance, 'text', 2)} ~ text %}}{inner}",
            f"{{% filter upper %}}{inner}{{% endfilter %}}",
            "{% include 'p.txt' %}",
            f"{{{{ m({expression(chance, 'text', 2)}) }}}}" if depth > 1 else inner,
        )
    )


def expression(chance: random.Random, kind: str, depth: int) -> str:
    """Return a random expression whose value is of this kind: a variable, or an expression with a filter."""
    if depth == 0 or chance.random() < 0.2:
        return kind
    takes, _, use = chance.choice([way for way in WAYS if way[1] == kind])
    operands = re.sub(r"[A-Z]{3,}", lambda name: name[0].lower(), use)
    return f"{expression(chance, takes, depth - 1)} | {operands}"


def alone(sources: dict[str, str], name: str, variables: dict[str, Any]) -> str:
    """Render a template by MiniJinja alone, with the rule of how a value is written."""
    environment = Environment(
        loader=sources.get,
        undefined_behavior="strict",
        finalizer=_written_as_html if name.endswith(".html") else _written,
        auto_escape_callback=lambda _: name.endswith(".html"),
    )
    return environment.render_template(name, **variables)


def compare_rendering(seed: int) -> bool:
    """Compare the texts of a random template. Return whether it was rendered."""
    chance = random.Random(seed)
    variables, name = variables_of(chance), chance.choice(("a/body.txt", "a/body.html"))
    if chance.random() < 0.02:
        variables["unused"] = "x" * SMALL_VARIABLES_BYTES  # so that the rendering has a process of its own
    macro = f"{{% macro m(text) %}}{random_statements(chance, 1)}{{% endmacro %}}"
    sources = {"p.txt": random_statements(chance, 0), name: macro + random_statements(chance, 3)}
    try:
        expected = alone(sources, name, variables)
    except TemplateError:
        with pytest.raises(TemplateFault):
            engine_of(sources).render(name, values_of(variables))
        return False
    try:
        text = engine_of(sources).render(name, values_of(variables))
    except TemplateFault as fault:
        # MiniJinja alone treats the last word of no words as empty in some filters.
        if "undefined" not in fault.problem:
            raise
        return False
    assert text == expected, (seed, sources, variables)
    return True


@pytest.mark.process
def test_random_legal_templates_have_the_same_text_as_in_minijinja_alone() -> None:
    rendered = sum(compare_rendering(seed) for seed in range(COUNT))
    assert rendered > COUNT / 3
