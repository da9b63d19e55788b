"""Templates: variables cannot reach or change Python, and cost a bounded amount of work."""

from pathlib import Path
from typing import Any

import pytest

from mailroom.content.engine import FUEL, MAX_RENDERED_BYTES
from mailroom.content.templates import Templates
from mailroom.errors import MAX_VARIABLES_BYTES, Invalid
from tests.support.unit.shelf import Shelf

WORK = f"template: a/body.txt:1 failed: it takes over {FUEL:,} steps of work; loop over less, or write less"


@pytest.mark.parametrize(
    "source",
    [
        "{{ x.__class__.__mro__[1].__subclasses__() }}",
        "{{ x['__class__']['__mro__'] }}",
        "{{ (x|attr('__class__')).__mro__ }}",
        "{{ ''.join.__globals__ }}",
        "{{ self.__init__.__globals__ }}",
        "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
        "{{ range.__class__.__base__ }}",
        "{{ '{0.__class__.__mro__}'.format(x) }}",
        "{{ '{x.__class__}'.format_map({'x': x}) }}",
        "{{ names.append('x') }}",
        "{{ names.__class__ }}",
        "{{ names._rows }}",
        "{{ user.update({'a': 1}) }}",
        "{{ user.clear() }}",
        "{{ user._entries }}",
        "{{ user.__class__.__init__ }}",
        "{{ user.items.__self__ }}",
        "{{ user.get.__func__ }}",
        "{{ price.as_integer_ratio() }}",
        "{% macro m() %}{% endmacro %}{{ m.__call__.__globals__ }}",
        "{{ namespace.__init__.__globals__ }}",
        "{% set user.b = 2 %}",
        "{% set names[0] = 'x' %}",
        "{{ user.__class__({}) }}",
        "{{ user.__init__({}) }}",
        "{{ names.__getattribute__('_rows') }}",
        "{{ user.items().__getattribute__('mapping') }}",
        "{{ debug() }}",
    ],
)
def test_a_template_cannot_reach_python_internals_or_change_its_variables(shelf: Shelf, source: str) -> None:
    variables: dict[str, Any] = {"x": "text", "names": ["a"], "user": {"b": 1}, "price": 9.5}
    with pytest.raises(Invalid):
        shelf.text(source, **variables)
    assert variables == {"x": "text", "names": ["a"], "user": {"b": 1}, "price": 9.5}


def test_template_syntax_in_the_value_of_a_variable_is_not_evaluated(shelf: Shelf) -> None:
    assert shelf.text("{{ x }}", x="{{ 7 * 7 }}{% include 'a' %}") == "{{ 7 * 7 }}{% include 'a' %}"


@pytest.mark.parametrize(
    ("source", "variables"),
    [
        ("{% for a in range(n) %}{% for b in range(n) %}{% endfor %}{% endfor %}", {"n": 1000}),
        (
            "{% for a in xs %}{% for b in xs %}{% for c in xs %}.{% endfor %}{% endfor %}{% endfor %}",
            {"xs": ["x"] * 50},
        ),
        (
            "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(depth) }}",
            {"depth": 16},
        ),
        ("{% for a in range(9000) %}{% for b in range(9) %}{{ long|upper }}{% endfor %}{% endfor %}", {}),
        ("{% for a in range(9000) %}{% if a in words %}{% endif %}{% endfor %}", {}),
        ("{% for a in range(9000) %}{{ words|sort|first }}{% endfor %}", {}),
        ("{% for a in range(9000) %}{{ long|replace('y', 'z')|length }}{% endfor %}", {}),
        ("{% for a in range(9000) %}{% include 'b/body.txt' %}{% endfor %}", {}),
    ],
)
def test_a_template_that_exceeds_the_limit_of_work_is_refused_with_a_reason(
    shelf: Shelf, source: str, variables: dict[str, Any]
) -> None:
    shelf.put("b", text="{% for b in range(99) %}{% endfor %}")
    assert shelf.problem(source, long="y" * 60_000, words=["w"] * 9_000, **variables) in (
        WORK,
        WORK.replace("a/", "b/"),
    )


def test_the_limit_of_work_applies_to_each_rendering_separately(shelf: Shelf) -> None:
    shelf.put("a", subject="Hello", text="{% for a in range(30000) %}{% endfor %}ok")
    templates = Templates(shelf.root)
    assert [templates.render("a", {}).text for _ in range(5)] == ["ok"] * 5


def test_a_template_that_loops_over_four_thousand_lines_is_within_the_limit_of_work(shelf: Shelf) -> None:
    source = (
        "{% for line in lines %}{{ loop.index }}. {{ line.name }}: {{ line.price }}"
        "{% if not loop.last %},\n{% endif %}{% endfor %}"
    )
    lines = [{"name": f"n{number}", "price": number} for number in range(4_000)]
    assert (shelf.text(source, lines=lines) or "").endswith("3999. n3998: 3998,\n4000. n3999: 3999")


@pytest.mark.parametrize(
    "source",
    [
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% macro m(n) %}{{ m(n + 1) }}{{ m(n + 1) }}{% endmacro %}{{ m(0) }}",
        "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}",
        "{% include 'a/body.txt' %}",
        "{% extends 'a/body.txt' %}",
        "{% for a in [[1]] recursive %}{{ loop([[1]]) }}{% endfor %}",
        "{{ range(10 ** 9)|list }}",
        "{{ 'x' * n }}",
        "{{ [1] * n }}",
        "{{ 10 ** n }}",
        "{{ '{:>20000000}'.format(x) }}",
        "{{ '%1000000000d'|format(1) }}",
        "{{ x|indent(n) }}",
        "{{ 1.5|round(n, 'ceil') ~ 1 / 0 }}",
        "{{ xs|batch(n, 1)|list|length ~ 1 / 0 }}",
        "{% set s = namespace(x='x') %}{% for _ in range(99) %}{% set s.x = s.x ~ s.x %}{% endfor %}",
        "{% for _ in range(999) %}{{ long }}{% endfor %}",
        "{% for _ in xs %}{{ loop.cycle() }}{% endfor %}",
    ],
)
def test_a_template_with_endless_recursion_a_huge_number_or_a_panic_is_refused_with_a_short_reason(
    shelf: Shelf, source: str
) -> None:
    problem = shelf.problem(source, n=10**9, x="a\nb", xs=[1], long="y" * 100_000)
    assert problem.startswith("template: a/body.txt")
    assert len(problem) < 300


def test_a_template_whose_output_is_over_the_limit_is_refused(shelf: Shelf) -> None:
    problem = shelf.problem("{% for _ in range(11) %}{{ long }}{% endfor %}", long="é" * 50_000)
    assert problem == f"template: a/body.txt writes 1,100,000 bytes; write at most {MAX_RENDERED_BYTES:,}"
    assert 11 * 100_000 > MAX_RENDERED_BYTES > MAX_VARIABLES_BYTES


def test_a_template_may_write_the_largest_allowed_variables_eight_times(shelf: Shelf) -> None:
    text = shelf.text("{{ long }}" * 8, long="y" * MAX_VARIABLES_BYTES)
    assert text == "y" * 8 * MAX_VARIABLES_BYTES


def test_a_template_of_thousands_of_brackets_is_refused_with_the_part_and_the_line(shelf: Shelf) -> None:
    assert shelf.problem("{" * 5000).startswith("template: a/body.txt:1 cannot be read: ")


@pytest.mark.parametrize(
    "name", ["../secret.txt", "/etc/passwd", "b/../../secret.txt", "..\\\\secret.txt", "b\\0"]
)
def test_an_include_cannot_read_a_file_outside_the_template_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    shelf = Shelf(tmp_path / "templates")
    shelf.put("b", text="b")
    assert "tried to include non-existing template" in shelf.problem(f"{{% include '{name}' %}}")
    assert "takes the name of a template from a variable" in shelf.problem("{% include name %}", name=name)
