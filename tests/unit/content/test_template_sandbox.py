"""Templates: no way out of the sandbox, and bounds on what a rendering may cost."""

import tracemalloc
from decimal import Decimal
from typing import Any

import pytest
from jinja2.sandbox import ImmutableSandboxedEnvironment

from mailroom.content.sandbox import FILTERS, MAX_WORK, METHODS, TESTS, faults
from mailroom.content.templates import Templates
from tests.support import ROOT
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


WORK = (
    f"template: a/body.txt failed: OverflowError: it takes over {MAX_WORK} steps of work; "
    "loop over less, or write, search and compare less"
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
    assert shelf.problem(source, **variables) == WORK


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
    assert "failed: OverflowError: " in shelf.problem(source, n=10**9)


HUGE: dict[str, Any] = {
    "n": 10**9,
    "text": "a\t\n" * 60_000,
    "long": "y" * 100_000,
    "many": [1] * 60_000,
    "words": [f"{each:04}" for each in range(12_000)],
    "tiny": Decimal("1E-125"),
    "pairs": [[each * (2**61 - 1), 1] for each in range(20_000)],  # numbers of one hash
}
"""What a producer may write: a number of any size, and texts and lists of an item's size."""


@pytest.mark.parametrize(
    "source",
    [
        *(f"{{{{ text.{name}(n) }}}}" for name in ("ljust", "rjust", "center", "zfill")),
        "{{ (text)['ljust']|string }}{% set pad = text['ljust'] %}{{ pad(n) }}",
        "{{ text.replace('a', long) }}",
        "{{ text.replace('', long) }}",
        "{{ long.join(many|map('string')) }}",
        "{{ ''.join([long] * 2000) }}",
        "{{ [long] * 2000 }}",
        "{{ '%*d' % (n, 1) }}",
        "{{ '%.*f' % (n, 1) }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ '%.1000000000f' % 1 }}",
        "{{ '%(a)-1000000000s' % {'a': 1} }}",
        "{{ '%(a(b))1000000000d' % {'a(b)': 1} }}",
        "{{ ('%(a)s' * 1000) % {'a': long} }}",
        "{{ '%*d'|format(n, 1) }}",
        "{{ '%(a)1000000000d'|format(a=1) }}",
        "{{ '{:>1000000000}'.format(text) }}",
        "{{ '{:>{}}'.format(text, n) }}",
        "{{ '{:.1000000000f}'.format(1.5) }}",
        "{{ ('{0}' * 1000).format(long) }}",
        "{{ '<b>{:>1000000000}</b>'|safe|string }}{{ ('<b>{:>{}}</b>'|safe).format(1, n) }}",
        "{{ text|center(n) }}",
        "{{ text|center(width=n) }}",
        "{{ [text]|map('center', n)|list }}",
        "{{ range(20000)|map('center', 1000)|list }}",
        "{{ text|indent(n) }}",
        "{{ text|indent(long) }}",
        "{{ text|indent(1000, first=true) }}",
        "{{ text|replace('a', long) }}",
        "{{ text|replace(new=long, old='a') }}",
        "{{ ('f' * 100000)|int(0, 16) is divisibleby(('e' * 50000)|int(0, 16)) }}",
        "{{ dict(pairs) }}",
        "{{ many|join(long) }}",
        "{{ many|join(d=long) }}",
        "{{ ([long] * 99 + [long] * 99)|join }}",
        "{{ many|batch(n, 1)|list }}",
        "{{ many|sum(start=[]) }}",
        "{{ 1.5|round(n, 'ceil') }}",
        "{{ 15|round(-n) }}",
        "{% set ns = namespace(x=n) %}{% for _ in range(99) %}{% set ns.x = ns.x * ns.x %}{% endfor %}",
        "{% set ns = namespace(x=n) %}{% for _ in range(99) %}{% set ns.x = ns.x ** 2 %}{% endfor %}",
        "{% set ns = namespace(x=tiny) %}{% for _ in range(999) %}{% set ns.x = ns.x / n %}{% endfor %}",
        # What grows in a variable, and is never written.
        "{% set ns = namespace(x='x') %}{% for _ in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
        "{% set ns = namespace(x='x') %}{% for _ in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
        "{% set ns = namespace(x=[1]) %}{% for _ in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}"
        "{{ ns.x }}",
        "{% set ns = namespace(x=[1]) %}{% for _ in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}"
        "{{ ns.x == ns.x|list }}",
        # What is joined apart from the output.
        "{% macro m() %}{% for _ in range(2000) %}{{ long }}{% endfor %}{% endmacro %}{{ m()|length }}",
        "{% set x %}{% for _ in range(2000) %}{{ long }}{% endfor %}{% endset %}{{ x|length }}",
        "{% filter length %}{% for _ in range(2000) %}{{ long }}{% endfor %}{% endfilter %}",
        "{% macro m() %}{{ caller()|length }}{% endmacro %}"
        "{% call m() %}{% for _ in range(2000) %}{{ long }}{% endfor %}{% endcall %}",
        "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% else %}LITERAL{% endif %}{% endmacro %}"
        "{{ m(13)|length }}".replace("LITERAL", "y" * 9_000),
    ],
)
def test_nothing_makes_much_of_a_producers_number_or_text(shelf: Shelf, source: str) -> None:
    tracemalloc.start()
    try:
        problem = shelf.problem(source, **HUGE)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert problem.startswith("template: a/body.txt")
    assert "OverflowError" in problem or "TypeError" in problem or "cannot be read" in problem
    assert peak < 8 * MAX_WORK


@pytest.mark.parametrize(
    "source",
    [
        *(
            f"{{% for each in words %}}{body}{{% endfor %}}"
            for body in (
                "{% if each in words %}{% endif %}",
                "{% if each is in words %}{% endif %}",
                "{% if each not in words %}{% endif %}",
                "{% if words == words|list %}{% endif %}",
                "{% if long < long ~ 'z' %}{% endif %}",
                "{% set x = long ~ each %}",
                "{% set x = long + each %}",
                "{% set x = words + [each] %}",
                "{% set x = long|upper %}",
                "{% set x = long.upper() %}",
                "{% set x = long|escape %}",
                "{% set x = long|wordcount %}",
                "{% set x = long.find('x') %}",
                "{% set x = words|sort %}",
                "{% set x = words|max %}",
                "{% set x = words|map('upper') %}",
                "{% set x = words|select('in', words) %}",
                "{% set x = long[1:] %}",
                "{% set x = words[::-1] %}",
                "{% set x = words.index('x') if each == '' else words.count('y') %}",
                "{% if loop.changed(words) %}{% endif %}",
                "{{ '%s'|format(words) == '' }}",
                "{{ '{}'.format(words) == '' }}",
            )
        ),
    ],
)
def test_what_reads_a_producers_text_or_list_in_each_pass_pays_each_time(shelf: Shelf, source: str) -> None:
    assert shelf.problem(source, **HUGE) == WORK


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{{ name.ljust(6) }}|{{ name|center(7) }}|{{ '7'.zfill(3) }}", "Ada   |  Ada  |007"),
        ("{{ '%-5s|%5.2f|%d%%' % (name, 1.234, 12345678901) }}", "Ada  | 1.23|12345678901%"),
        ("{{ '%4d' % 1 }}{{ '%s'|format(12345678901) }}", "   112345678901"),
        ("{{ '%(n)s is %(n)s' % {'n': name} }}", "Ada is Ada"),
        ("{{ '{:,} {:>5} {n!r}'.format(12345678901, 'a', n=name) }}", "12,345,678,901     a 'Ada'"),
        ("{{ 'a\nb'|indent }}|{{ 'a\nb'|indent('> ', first=true) }}", "a\n    b|> a\n> b"),
        ("{{ [1, 2]|join(', ') }}{{ '-'.join(['a', 'b']) }}{{ ''.join('cd') }}", "1, 2a-bcd"),
        ("{{ [{'a': 1}, {'a': 2}]|join('+', attribute='a') }}", "1+2"),
        ("{{ 'a-b-c'|replace('-', '+', 1) }}{{ 'a-b'.replace('-', '') }}", "a+b-cab"),
        ("{{ 2.345|round(2) }} {{ 2.1|round(method='ceil') }}", "2.35 3.0"),
        ("{{ {'a': [1]}|tojson }}", '{"a": [1]}'),
        ("{{ [1, 2, 3]|batch(2, 0)|list }}", "[[1, 2], [3, 0]]"),
        ("{{ long|wordwrap(79)|length }} {{ long|truncate(9) }}", "100099 word..."),
        ("{{ (long|replace('word', 'words')).split()|length }}", "20020"),
        ("{{ 12345678901|default(0) }}{{ missing|default(12345678901) }}", "1234567890112345678901"),
    ],
)
def test_ordinary_formatting_works(shelf: Shelf, source: str, text: str) -> None:
    assert shelf.text(source, name="Ada", long="word " * 20_020) == text


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("{{ x|pprint }}", "there is no filter 'pprint'; use one of: abs, batch, "),
        ("{{ x|map('pprint') }}", "there is no filter 'pprint'"),
        ("{% filter pprint %}{% endfilter %}", "there is no filter 'pprint'"),
        ("{% if x is callable %}{% endif %}", "there is no test 'callable'; use one of: boolean, "),
        ("{{ x|select('callable') }}{{ x|rejectattr('a', 'callable') }}", "there is no test 'callable'"),
        ("{{ x|selectattr('a', 'callable') }}", "there is no test 'callable'"),
        ("{{ x.encode() }}", "there is no method 'encode'; use one of: capitalize, "),
        ("{{ x['encode']() }}", "there is no call of 'a value'"),
    ],
)
def test_what_is_not_on_the_list_is_refused_with_its_file_and_line(
    shelf: Shelf, source: str, said: str
) -> None:
    shelf.put("a", text=f"Hello\n{source}")
    (found,) = faults(shelf.root)
    assert found.startswith(f"a/body.txt:2: {said}")


def test_a_method_that_is_not_on_the_list_is_refused_by_another_name_too(shelf: Shelf) -> None:
    assert "unsafe" in shelf.problem("{% set f = x.encode %}{{ f() }}", x="text")


def test_macros_of_another_file_and_parts_of_this_one_may_be_called(shelf: Shelf) -> None:
    shelf.put("_parts", text="{% macro bold(x) %}*{{ x }}*{% endmacro %}")
    source = (
        "{% import '_parts/body.txt' as parts %}{{ parts.bold(x) }}{% block b %}b{% endblock %}{{ self.b() }}"
    )
    assert shelf.text(source, x="Ada") == "*Ada*bb"


def test_every_template_of_ours_is_within_the_list() -> None:
    assert list(faults(ROOT / "templates")) == []


def test_what_the_list_names_is_there() -> None:
    known = ImmutableSandboxedEnvironment()
    assert known.filters.keys() >= FILTERS
    assert known.tests.keys() >= TESTS
    assert {name for kind in (str, list, dict) for name in dir(kind)} >= METHODS


def test_modest_products_and_powers_work(shelf: Shelf) -> None:
    assert shelf.text("{{ '-' * 3 }}{{ 2 * 3 }}{{ 2 ** 10 }}{{ 1.5 * 2 }}") == "---610243.0"


def test_a_part_that_writes_too_much_is_refused(shelf: Shelf) -> None:
    assert shelf.problem(f"{{% for a in range(9000) %}}{'x' * 2000}{{% endfor %}}") == WORK


@pytest.mark.parametrize(
    "source", ["{{ 1 / 0 }}", "{{ 'a' + 1 }}", "{{ x() }}", "{{ x|round }}", "{{ [] | first + 'a' }}"]
)
def test_whatever_a_template_raises_is_named_with_its_part(shelf: Shelf, source: str) -> None:
    assert shelf.problem(source, x="text").startswith("template: a/body.txt")


def test_an_error_that_quotes_a_large_variable_is_still_one_sentence(shelf: Shelf) -> None:
    assert shelf.problem("{{ x|int + 'a' }}", x="y" * 100_000).startswith(
        "template: a/body.txt failed: TypeError"
    )


def test_a_long_word_is_not_wrapped(shelf: Shelf) -> None:
    """Each of its lines would copy the rest of the word: ten megabytes of one word would take minutes."""
    assert shelf.text("{{ x|wordwrap(4) }}", x="a" * 10 + " b c d") == "aaaaaaaaaa\nb c\nd"


def test_a_template_of_thousands_of_brackets_cannot_be_read(shelf: Shelf) -> None:
    assert shelf.problem("{" * 5000).startswith("template: a/body.txt cannot be read: ")
