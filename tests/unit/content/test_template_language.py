"""Templates: values of items, numbers, missing variables, and each filter with each type."""

import re
from decimal import Decimal
from typing import Any

import pytest
from minijinja import Environment

from mailroom.content.engine import TemplateFault
from mailroom.content.templates import engine_of
from mailroom.content.variables import values_of
from mailroom.errors import Invalid
from tests.support.unit.shelf import Shelf

FILTERS, TESTS = (
    re.findall(r'"([a-z]+)"', listed)
    for listed in re.findall(
        r"(?:tests|filters): \[(.*?)\]", Environment().render_str("{{ debug() }}"), re.DOTALL
    )[::-1]
)
LENIENT = {"d", "default"}
"""Filters that exist for a missing variable."""
ARGUMENTS = {
    "attr": "'a'",
    "batch": "3",
    "format": "1",
    "groupby": "'a'",
    "map": "'string'",
    "replace": "'a', 'b'",
    "select": "'defined'",
    "selectattr": "'a'",
    "reject": "'none'",
    "rejectattr": "'a'",
    "slice": "2",
    "split": "'a'",
    "zip": "[1]",
}
VALUES: dict[str, Any] = {
    "text": "a <b>",
    "empty text": "",
    "number": Decimal("12.5"),
    "whole number": Decimal(7),
    "long number": Decimal("12345678901234567890.5"),
    "true": True,
    "null": None,
    "list": ["b", "a"],
    "list of maps": [{"a": Decimal("1.5")}, {"a": Decimal(2)}],
    "empty list": [],
    "map": {"a": "b", "items": ["c"]},
    "empty map": {},
}


def of(name: str) -> str:
    return f"{name}({ARGUMENTS[name]})" if name in ARGUMENTS else name


def rendered_text(source: str, part: str = "a/body.txt", /, **variables: Any) -> str:
    return engine_of({part: source}).render(part, values_of(variables))


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("part", ["a/body.txt", "a/body.html"])
def test_each_template_filter_renders_a_value_or_raises_an_error_that_names_the_part(
    name: str, part: str
) -> None:
    rendered, faults = list[str](), list[TemplateFault]()
    for value in VALUES.values():
        try:
            rendered.append(rendered_text(f"{{{{ value|{of(name)} }}}}", part, value=value))
        except TemplateFault as fault:
            faults.append(fault)
    assert rendered
    assert not [output for output in rendered if re.search("method|function|object at", output)]
    assert {fault.place.partition(":")[0] for fault in faults} <= {part}


@pytest.mark.parametrize("name", [name for name in FILTERS if name not in LENIENT])
@pytest.mark.parametrize("variable", ["order", "order.lines", "order['lines']"])
@pytest.mark.parametrize("use", ["{{{{ {} }}}}", "{{% for x in {} %}}{{% endfor %}}", "{{% set x = {} %}}"])
def test_a_missing_variable_is_reported_even_if_a_filter_is_applied_to_it(
    name: str, variable: str, use: str
) -> None:
    variables = {} if variable == "order" else {"order": {"number": 7}}
    with pytest.raises(Invalid) as caught:
        rendered_text(use.format(f"{variable}|{of(name)}"), **variables)
    assert caught.value.field == variable
    assert caught.value.problem == "is missing; a/body.txt:1 uses it, so the message must have it"


@pytest.mark.parametrize("name", sorted(LENIENT))
def test_a_missing_variable_may_have_a_default(name: str) -> None:
    assert (
        rendered_text(f"{{{{ plan|{name}('free')|upper }}}} {{{{ user.plan|{name}('free') }}}}", user={})
        == "FREE free"
    )


@pytest.mark.parametrize("name", ["items", "keys", "values", "get", "copy", "pop", "update", "clear"])
def test_a_missing_variable_or_entry_named_like_a_method_is_reported_as_missing(name: str) -> None:
    for source, variables in ((name, {}), (f"order.{name}", {"order": {"number": 7}})):
        for use in ("{{{{ {} }}}}", "{{{{ {}|length }}}}", "{{% for x in {} %}}{{% endfor %}}"):
            with pytest.raises(Invalid) as caught:
                rendered_text(use.format(source), **variables)
            assert caught.value.field == source
        assert (
            rendered_text(f"{{{{ {source} is defined }}}}{{{{ {source}|default('none') }}}}", **variables)
            == "Falsenone"
        )


@pytest.mark.parametrize(
    "name", ["source", "name", "args", "kwargs", "context", "loop", "range", "caller", "cls", "state", "dict"]
)
def test_a_variable_may_be_named_like_a_word_of_the_language_or_of_its_library(name: str) -> None:
    assert rendered_text(f"{{{{ {name} }}}}", **{name: "mine", "self": "not read"}) == "mine"


@pytest.mark.parametrize("name", ["items", "keys", "values", "get", "copy", "pop", "update", "count"])
def test_an_entry_of_a_map_takes_precedence_over_a_method_of_the_same_name(name: str) -> None:
    source = f"{{{{ {name} }}}}{{{{ order.{name} }}}}{{{{ order['{name}'] }}}}{{{{ orders[0].{name} }}}}"
    assert rendered_text(source, order={name: "b"}, orders=[{name: "c"}], **{name: "a"}) == "abbc"


def test_the_entries_of_a_map_are_looped_over_in_the_order_of_the_item() -> None:
    order = {"b": Decimal("1.50"), "a": {"items": 2}}
    assert (
        rendered_text("{% for name, x in order.items() %}{{ name }}{{ x }}{% endfor %}", order=order)
        == "b1.5a{'items': 2}"
    )
    assert (
        rendered_text("{{ order.keys()|join }}{{ order.get('c', 'd') }}{{ order|length }}", order=order)
        == "bad2"
    )
    assert rendered_text("{{ 'b' in order }}{{ order == copy }}", order=order, copy=dict(order)) == "TrueTrue"


@pytest.mark.parametrize(
    ("number", "written"),
    [
        (Decimal("12.5"), "12.5"),
        (Decimal("12.50"), "12.5"),
        (Decimal(12), "12"),
        (Decimal("12.0"), "12"),
        (Decimal("1E+3"), "1000"),
        (Decimal("-0.1"), "-0.1"),
        (12.5, "12.5"),
        (12.0, "12"),
        (12, "12"),
        (Decimal(2**53), "9007199254740992"),
        (Decimal(2**53 + 1), "9007199254740993"),
        (Decimal("12345678901234567890.123456789"), "12345678901234567890.123456789"),
        (Decimal("0.12345678901234567890123"), "0.12345678901234567890123"),
        (Decimal("1E-7"), "0.0000001"),
        (Decimal("1E+30"), "1000000000000000000000000000000"),
    ],
)
def test_a_number_is_written_with_all_its_digits(number: Any, written: str) -> None:
    assert rendered_text("{{ n }}", n=number) == written
    assert (
        rendered_text("{{ n }}{{ ns[0] }}{{ m.n }}", "a.html", n=number, ns=[number], m={"n": number})
        == written * 3
    )
    assert Decimal(rendered_text("{{ n|tojson }}", n=number).strip('"')) == Decimal(written)


@pytest.mark.parametrize("number", [Decimal("12.5"), 12.5])
def test_a_decimal_and_a_float_have_the_same_results_in_the_arithmetic_of_a_template(number: Any) -> None:
    source = (
        "{{ n * 1.5 }} {{ n + 0.5 }} {{ n > 12 }} {{ n == 12.5 }} {{ [n, 1]|sum }} {{ n|round|int }} {{ -n }}"
    )
    assert rendered_text(source, n=number) == "18.75 13 True True 13.5 12 -12.5"
    assert (
        rendered_text("{{ '{:,.2f}'.format(n * 1000) }} {{ '%.1f'|format(n) }}", n=number) == "12,500.00 12.5"
    )


@pytest.mark.parametrize("kind", ["filter", "test"])
@pytest.mark.parametrize(
    "source",
    [
        {"filter": "{{ x|nosuch }}", "test": "{{ x is nosuch }}"},
        {"filter": "{{ x | upper | nosuch(1) }}", "test": "{% if x is not nosuch(1) %}{% endif %}"},
        {"filter": "{% filter nosuch %}{% endfilter %}", "test": "{{ 'a' if x is nosuch }}"},
        {"filter": "{% set y = 'a' ~ (x)|nosuch %}", "test": "{% set y = (x) is nosuch %}"},
    ],
)
def test_an_unknown_filter_or_test_is_reported_with_its_line_even_in_a_branch_that_never_runs(
    shelf: Shelf, kind: str, source: dict[str, str]
) -> None:
    shelf.put("a", text=f"\n{{# {source[kind]} #}}{{% if false %}}\n{source[kind]}{{% endif %}}")
    (fault,) = engine_of(shelf.root).faults()
    problem = f"uses the {kind} 'nosuch', which is unknown; see `mailroom docs write-templates`"
    assert fault.sentence == f"a/body.txt:3 {problem}"


@pytest.mark.parametrize(
    "source",
    [
        "{{ 'x|nosuch' }}",
        '{{ "it\'s|nosuch" }}',
        "{# x|nosuch #}",
        "x|nosuch",
        "{% raw %}{{ x|nosuch }}{% endraw %}",
        "{{ '}}|nosuch' }}",
        "{{ x == '%}' }}{{ 'is nosuch' }}",
        *(f"{{{{ x|{name} }}}}" for name in FILTERS),
        *(f"{{{{ x is {name} }}}}" for name in TESTS),
    ],
)
def test_known_filters_and_words_that_resemble_a_filter_are_not_reported_as_unknown(source: str) -> None:
    assert [*engine_of({"a.txt": source}).faults()] == []


@pytest.mark.parametrize(
    "source",
    ["{{ 1 / 0 }}", "{{ 'a' + 1 }}", "{{ x() }}", "{{ x|abs }}", "{{ [] | first + 'a' }}"],
)
def test_an_error_while_rendering_is_reported_in_one_short_sentence_with_its_line(source: str) -> None:
    with pytest.raises(Invalid) as caught:
        rendered_text(f"\n{source}", x="y" * 100_000)
    assert re.match(r"template: a/body\.txt:2 (failed|cannot be read): .{5,200}$", str(caught.value))
