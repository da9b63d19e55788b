"""Templates: no way out of the sandbox, and bounds on what a rendering may cost."""

from typing import Any

import pytest

from mailroom.content.templates import MAX_CHARACTERS, MAX_STEPS, Templates
from tests.support.unit.shelf import Shelf


@pytest.mark.parametrize(
    "source",
    [
        "{{ x.__class__.__mro__[1].__subclasses__() }}",
        "{{ x['__class__']['__mro__'] }}",
        "{{ (x|attr('__class__')).__mro__ }}",
        "{{ ''.join.__globals__ }}",
        "{{ self.__init__.__globals__ }}",
        "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
        "{{ joiner.__init__.__globals__['os'] }}",
        "{{ range.__class__.__base__ }}",
        "{{ '{0.__class__.__mro__}'.format(x) }}",
        "{{ '{x.__class__}'.format_map({'x': x}) }}",
        "{{ ('%s' % x).__class__.__base__ }}",
        "{{ names.append('x') }}",
        "{{ user.update({'a': 1}) }}",
        "{{ user.clear() }}",
        "{% macro m() %}{% endmacro %}{{ m.__call__.__globals__ }}",
        "{{ namespace.__init__.__globals__ }}",
    ],
)
def test_no_template_reaches_internals_or_changes_its_variables(shelf: Shelf, source: str) -> None:
    names, user = ["a"], {"b": 1}
    assert shelf.problem(source, x="text", names=names, user=user).startswith("template: a/body.txt")
    assert (names, user) == (["a"], {"b": 1})


def test_a_variable_is_never_taken_for_a_template(shelf: Shelf) -> None:
    assert shelf.text("{{ x }}", x="{{ 7 * 7 }}{% include 'a' %}") == "{{ 7 * 7 }}{% include 'a' %}"


LOOPS = (
    f"template: a/body.txt failed: OverflowError: it takes over {MAX_STEPS} loop passes and calls; "
    "loop over less"
)


@pytest.mark.parametrize(
    ("source", "variables"),
    [
        ("{% for a in range(90000) %}{% endfor %}", {}),
        ("{% for a in range(n) %}{% for b in range(n) %}{% endfor %}{% endfor %}", {"n": 1000}),
        (
            "{% for a in xs %}{% for b in xs %}{% for c in xs %}.{% endfor %}{% endfor %}{% endfor %}",
            {"xs": ["x"] * 50},
        ),
        (
            "{% macro m() %}{% for a in range(9000) %}{% endfor %}{% endmacro %}{{ m() }}{{ m() }}{{ m() }}",
            {},
        ),
        ("{% for a in range(30000) if a > 29999 %}{% endfor %}", {}),
        (
            "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(depth) }}",
            {"depth": 16},
        ),
        ("{% for a in range(30000) %}{{ loop.last }}{% endfor %}", {}),
        (
            "{% set n = namespace(x=0) %}"
            "{% macro m() %}{% for a in range(150) %}{% set n.x = n.x + 1 %}{% endfor %}"
            "{% endmacro %}{% for a in range(150) %}{{ m() }}{% endfor %}",
            {},
        ),
    ],
)
def test_a_loop_over_budget_ends_with_a_sentence(
    shelf: Shelf, source: str, variables: dict[str, Any]
) -> None:
    assert shelf.problem(source, **variables) == LOOPS


def test_the_budget_is_one_renderings_and_not_the_processs(shelf: Shelf) -> None:
    shelf.put("a", subject="Hello", text="{% for a in range(15000) %}{% endfor %}ok")
    templates = Templates(shelf.root)
    assert [templates.render("a", {}).text for _ in range(3)] == ["ok"] * 3


def test_a_loop_within_budget_knows_where_it_is(shelf: Shelf) -> None:
    source = (
        "{% for a in xs %}{{ loop.index }}/{{ loop.length }}{{ a }}"
        "{% if not loop.last %},{% endif %}{% else %}none{% endfor %}"
    )
    assert shelf.text(source, xs=["a", "b"]) == "1/2a,2/2b"
    assert shelf.text(source, xs=[]) == "none"


@pytest.mark.parametrize(
    "source",
    [
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% macro m(n) %}{{ m(n + 1) }}{{ m(n + 1) }}{% endmacro %}{{ m(0) }}",
        "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}",
        "{% include 'a/body.txt' %}",
        "{% for a in [[1]] recursive %}{{ loop([[1]]) }}{% endfor %}",
        "{{ range(10 ** 9)|list }}",
    ],
)
def test_a_recursion_without_end_ends_with_a_sentence(shelf: Shelf, source: str) -> None:
    assert shelf.problem(source).startswith("template: a/body.txt failed: ")


@pytest.mark.parametrize(
    "source",
    [
        "{{ 'x' * n }}",
        "{{ n * 'x' }}",
        "{{ ('x' * 4000000) * 4000000 }}",
        "{{ [1] * n }}",
        "{{ n * [1] }}",
        "{{ (1, 2) * n }}",
        "{{ 10 ** n }}",
        "{{ n ** n }}",
        "{{ 2 ** -n }}",
    ],
)
def test_a_product_or_power_that_would_fill_the_memory_is_refused(shelf: Shelf, source: str) -> None:
    found = shelf.problem(source, n=10**9)
    assert "failed: OverflowError: " in found
    assert found.endswith("makes a value that is too large")


def test_modest_products_and_powers_work(shelf: Shelf) -> None:
    assert shelf.text("{{ '-' * 3 }}{{ 2 * 3 }}{{ 2 ** 10 }}{{ 1.5 * 2 }}") == "---610243.0"


def test_a_part_that_writes_too_much_is_refused(shelf: Shelf) -> None:
    found = shelf.problem("{% for a in range(n) %}{{ 'x' * 1000 }}{% endfor %}", n=MAX_CHARACTERS // 999)
    assert found.endswith(f"failed: OverflowError: it writes over {MAX_CHARACTERS} characters; write less")


@pytest.mark.parametrize(
    "source", ["{{ 1 / 0 }}", "{{ 'a' + 1 }}", "{{ x() }}", "{{ x|round }}", "{{ [] | first + 'a' }}"]
)
def test_whatever_a_template_raises_is_named_with_its_part(shelf: Shelf, source: str) -> None:
    assert shelf.problem(source, x="text").startswith("template: a/body.txt")


def test_an_error_that_quotes_a_large_variable_is_still_one_sentence(shelf: Shelf) -> None:
    assert shelf.problem("{{ x|int + 'a' }}", x="y" * 100_000).startswith(
        "template: a/body.txt failed: TypeError"
    )
