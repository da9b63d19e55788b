"""Templates: how their files are read, and which variables and parts they name."""

from pathlib import Path
from typing import Any

import pytest

from mailroom.content.engine import TemplateFault
from mailroom.content.source import Reference, is_cheap, references, strict
from mailroom.content.templates import FRESH_SECONDS, Templates, engine_of, sources_in
from mailroom.content.variables import values_of
from tests.support.unit.shelf import Shelf

BOM = b"\xef\xbb\xbf"


def write(root: Path, content: bytes, name: str = "a/body.txt") -> None:
    (root / name).parent.mkdir(exist_ok=True)
    (root / name).write_bytes(content)


@pytest.mark.parametrize("absolute", [True, False])
def test_the_byte_order_mark_of_a_template_file_is_dropped_and_its_line_ends_are_normalised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, absolute: bool
) -> None:
    write(tmp_path, BOM + b"Dear {{ name }}\r\n\r\nBye\rAda \xc3\xa9")
    write(tmp_path, BOM + b"{% macro b(x) %}*{{ x }}*\r\n{% endmacro %}", "_parts/bold.txt")
    write(tmp_path, BOM + b"{% from '_parts/bold.txt' import b %}{{ b(name) }}\r\n", "b/body.txt")
    monkeypatch.chdir(tmp_path)
    engine = engine_of(tmp_path if absolute else Path())
    assert engine.render("a/body.txt", {"name": "Bob"}) == "Dear Bob\n\nBye\nAda é"
    assert engine.render("b/body.txt", {"name": "Bob"}) == "*Bob*\n"
    assert engine.part("a/body.txt").source == "Dear {{ name }}\n\nBye\nAda é"


def test_the_examples_of_a_template_are_not_parts_and_a_template_may_be_named_examples(
    tmp_path: Path,
) -> None:
    for name in ("a/body.txt", "a/examples/body.txt", "examples/body.txt"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("Hello")
    assert sources_in(tmp_path).keys() == {"a/body.txt", "examples/body.txt"}


@pytest.mark.parametrize("content", [b"Dear \xe9", "Dear {{ name }}".encode("utf-16"), b"\xff\xfe"])
def test_the_error_about_a_template_file_that_is_not_utf_8_names_the_file(
    tmp_path: Path, content: bytes
) -> None:
    write(tmp_path, content)
    write(tmp_path, b"Hello", "a/subject.txt")
    write(tmp_path, b"{% include 'a/body.txt' %}", "b/body.txt")
    expected = "template: a/body.txt is not UTF-8; save it as UTF-8"
    with pytest.raises(TemplateFault) as caught:
        Templates(tmp_path).render("a", {"name": "Bob"})
    assert str(caught.value) == expected
    assert [fault.sentence for fault in engine_of(tmp_path).faults()] == [expected.removeprefix("template: ")]
    with pytest.raises(TemplateFault) as caught:
        engine_of(tmp_path).render("b/body.txt", {})
    assert str(caught.value) == expected


def test_a_change_of_a_template_file_takes_effect_within_a_second(shelf: Shelf) -> None:
    shelf.put("_parts", text="{{ name }}")
    shelf.put("a", subject="Hello", text="{% include '_parts/body.txt' %}!")
    moment = [0.0]
    templates = Templates(shelf.root, clock=lambda: moment[0])
    assert templates.render("a", {"name": "Ada"}).text == "Ada!"
    shelf.put("_parts", text="Dear {{ name }}")
    shelf.put("b", subject="Hi", text="b")
    assert templates.names() == ["a"]
    moment[0] = FRESH_SECONDS
    assert templates.render("a", {"name": "Ada"}).text == "Dear Ada!"
    assert templates.names() == ["a", "b"]


def test_template_files_are_read_again_only_if_one_of_them_has_changed(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf.put("a", subject="Hello", text="{{ name }}")
    moment, reads = [0.0], list[Path]()
    templates = Templates(shelf.root, clock=lambda: moment[0])
    read = Path.read_text

    def counted(path: Path, **form: Any) -> str:
        reads.append(path)
        return read(path, **form)

    monkeypatch.setattr(Path, "read_text", counted)
    for tick in range(30):
        moment[0] = tick / 10
        templates.render("a", {"name": "Ada"})
    assert reads == []
    shelf.put("a", text="Dear {{ name }}")
    moment[0] = 4
    templates.render("a", {"name": "Ada"})
    assert len(reads) == 2


@pytest.mark.parametrize("name", ["_layout/style.css", "_layout/logo.svg", "_layout/address", "a/part.mjml"])
@pytest.mark.parametrize("place", ["folder", "bundle", "published"])
def test_a_part_of_any_suffix_is_found_in_a_folder_a_bundle_and_a_published_version(
    place: str, name: str, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf.put("a", html=f"{{% include '{name}' %}}")
    (shelf.root / name).parent.mkdir(exist_ok=True)
    (shelf.root / name).write_text("<{{ x }}>")
    engine = engine_of(shelf.root)
    if place == "bundle":
        monkeypatch.chdir(shelf.root)
        engine = engine_of(Path())
    elif place == "published":
        engine = engine_of({part: found.source for part, found in engine.reached(["a/body.html"]).items()})
    assert engine.render("a/body.html", {"x": "<"}) == "<&lt;>"


def test_a_variable_in_an_included_part_is_escaped_as_in_the_file_that_includes_the_part(
    shelf: Shelf,
) -> None:
    shelf.put("a", text="{% include '_parts/body.html' %}", html="{% include '_parts/body.txt' %}")
    shelf.put("_parts", text="{{ x }}", html="{{ x }}")
    engine = engine_of(shelf.root)
    assert engine.render("a/body.html", {"x": "<"}) == "&lt;"
    assert engine.render("a/body.txt", {"x": "<"}) == "<"


def test_a_binary_file_is_reported_as_a_fault_only_if_a_template_uses_it(shelf: Shelf) -> None:
    shelf.put("a", text="Hello")
    write(shelf.root, b"\x89PNG\xff", "_layout/logo.png")
    assert [*engine_of(shelf.root).faults()] == []
    shelf.put("a", text="{% include '_layout/logo.png' %}")
    (fault,) = engine_of(shelf.root).faults("a/")
    assert fault.sentence == "_layout/logo.png is not UTF-8; save it as UTF-8"


@pytest.mark.parametrize(
    ("tag", "names", "is_open"),
    [
        ("{% include 'a.txt' %}", ["a.txt"], False),
        ('{%- include "a.txt" ignore missing -%}', ["a.txt"], False),
        ("{% include ['a.txt', 'b.txt'] without context %}", ["a.txt", "b.txt"], False),
        ("{% extends 'a.txt' %}", ["a.txt"], False),
        ("{% import 'a.txt' as parts with context %}", ["a.txt"], False),
        ("{% from 'a.txt' import one, two as three %}", ["a.txt"], False),
        ("{% from ' import b.txt' import one %}", [" import b.txt"], False),
        ("{% include name %}", [], True),
        ("{% include '_parts/' ~ name ~ '.txt' %}", ["_parts/", ".txt"], True),
        ("{% extends 'a.txt' if wide else 'b.txt' %}", ["a.txt", "b.txt"], False),
        ("{% extends 'a.txt' if wide else name %}", ["a.txt"], True),
    ],
)
def test_a_tags_reference_lists_the_template_names_and_is_open_if_a_name_comes_from_a_variable(
    tag: str, names: list[str], is_open: bool
) -> None:
    (reference,) = references(f"{{# {tag} #}}{{% raw %}}{tag}{{% endraw %}}{tag}")
    assert (reference.names, reference.open) == (names, is_open)


@pytest.mark.parametrize("source", ["{% include_x %}", "{{ include }}", "{% set x = 'include' %}", "include"])
def test_the_word_include_outside_of_an_include_tag_is_not_a_reference_to_a_template(source: str) -> None:
    assert list[Reference](references(source)) == []


def test_the_variables_of_a_template_include_the_variables_of_all_its_parts(shelf: Shelf) -> None:
    (shelf.root / "_layout").mkdir()
    (shelf.root / "_layout/base.txt").write_text("{{ base }}{% block b %}{% endblock %}")
    (shelf.root / "_layout/parts.txt").write_text("{% macro m(x) %}{{ x }}{{ seen }}{% endmacro %}")
    (shelf.root / "_layout/foot.txt").write_text("{{ foot.city }}")
    shelf.put(
        "a",
        text="{% extends '_layout/base.txt' %}{% from '_layout/parts.txt' import m %}{% block b %}"
        "{% set y = name %}{{ m(y) }}{% for line in lines %}{{ loop.index }}{{ line }}{% endfor %}"
        "{% include '_layout/foot.txt' %}{{ range(3) }}{{ items }}{{ 'text' }}{% endblock %}",
    )
    used = engine_of(shelf.root).variables("a/body.txt")
    assert used == {"base", "seen", "foot", "name", "lines", "items"}


def test_the_variables_of_a_template_include_those_of_all_parts_that_a_condition_selects_among(
    shelf: Shelf,
) -> None:
    shelf.put("a", text="{% include '_parts/body.txt' if wide else '_parts/body.html' %}")
    shelf.put("_parts", text="{{ one }}", html="{{ two }}")
    assert engine_of(shelf.root).variables("a/body.txt") == {"wide", "one", "two"}


@pytest.mark.parametrize("name", ["caller", "kwargs", "loop", "self", "super", "varargs"])
def test_a_name_that_the_template_language_defines_is_not_listed_as_a_variable_of_a_template(
    name: str,
) -> None:
    sources = {
        "a/body.txt": f"{{% include 'b/body.txt' if {name} else 'b/body.txt' %}}",
        "b/body.txt": "{{ wide }}",
    }
    assert engine_of(sources).variables("a/body.txt") == {"wide"}


@pytest.mark.parametrize("code", ["{% include '_parts/' ~ kind %}", "{% include names ignore missing %}"])
def test_the_name_of_a_part_may_not_come_from_a_variable(code: str) -> None:
    (fault,) = engine_of({"a.txt": f"{{# {code} #}}\n{code}"}).faults()
    assert (
        fault.sentence
        == "a.txt:2 takes the name of a template from a variable; use literals and `if` instead"
    )


@pytest.mark.parametrize(
    ("code", "variables", "text"),
    [
        ("{% if attribute == 'colour' %}c{% endif %}", {"attribute": "colour"}, "c"),
        ("{% if product.attribute == 'size' %}c{% endif %}", {"product": {"attribute": "size"}}, "c"),
        ("{% set attribute = x %}{{ attribute }}", {"x": "a"}, "a"),
        ("{% macro row(attribute) %}{{ attribute }}{% endmacro %}{{ row(attribute=x) }}", {"x": "a"}, "a"),
        (
            "{{ rows|sort(attribute=field)|map(attribute=field)|join }}",
            {"rows": [{"a": 2}, {"a": 1}], "field": "a"},
            "12",
        ),
        ("{{ rows|sort(**options)|join }}", {"rows": [1, 2], "options": {"reverse": True}}, "21"),
        (
            "{{ m|tojson(indent=true)|length }}{{ m|tojson(indent=n)|length }}",
            {"m": {"a": 1}, "n": 4},
            "1214",
        ),
        (
            "{{ ('{:.2f}').format(x) }} {{ '{:.1f}' . format(x) }} {{ p.format(x) }}",
            {"x": 1.5, "p": "{}"},
            "1.50 1.5 1.5",
        ),
        (
            "{{ greeting|format(order) }}",
            {"greeting": "Hello %(name)s", "order": {"name": "Ada"}},
            "Hello Ada",
        ),
        ("{{ a.is is defined }}{{ a.is | upper }}", {"a": {"is": "x"}}, "TrueX"),
        ("{{ x . y | upper }}{{ x.\n y | length }}", {"x": {"y": "a"}}, "A1"),
        ("{{ {'a': {'b': x}}|tojson }}", {"x": 1}, '{"a": {"b": 1}}'),
    ],
)
def test_an_ordinary_expression_of_a_template_is_rendered_and_not_reported_as_a_fault(
    code: str, variables: dict[str, Any], text: str
) -> None:
    engine = engine_of({"a.txt": code})
    assert [*engine.faults()] == []
    assert engine.render("a.txt", values_of(variables)) == text


@pytest.mark.parametrize(
    "code", ["{{ x . y | length }}", "{{ {'a': {'b': 1}}|tojson }}{{ x['y'] |length }}", "{{ x [0]|e }}"]
)
def test_a_missing_variable_is_reported_whatever_blanks_and_brackets_are_around_it(code: str) -> None:
    with pytest.raises(TemplateFault) as caught:
        engine_of({"a.txt": code}).render("a.txt", values_of({"x": {}}))
    assert caught.value.field.startswith("x")


@pytest.mark.parametrize(
    ("source", "same"),
    [
        ("{{ x|upper }}", False),
        ("{% set x | upper %}a{% endset %}{{ x }}", True),
        ("{% filter upper | trim %}a{% endfilter %}", True),
        ("{{ x|default('a') }}{{ x | d }}", True),
        ("{{ 'x|upper' }}x|upper{# x|upper #}{% raw %}{{ x|upper }}{% endraw %}", True),
        ("{{ x is defined and 5|string and (x) | string }}", True),
        ("{{ x", True),
    ],
)
def test_only_a_variable_before_a_filter_is_rewritten_to_be_checked(source: str, same: bool) -> None:
    assert (strict(source) == source) == same
    assert strict(source).count("\n") == source.count("\n")


@pytest.mark.parametrize(
    "source",
    [
        "{% set ns = namespace(a=1) %}",
        "{% for a in tree recursive %}{{ loop(a) }}{% endfor %}",
        "{% block b %}{{ self.b() }}{% endblock %}",
        "{% macro m(n) %}{{ m([n, n]) }}{% endmacro %}",
        "{% macro a(n) %}{{ b(n) }}{% endmacro %}{% macro b(n) %}{{ a([n, n]) }}{% endmacro %}",
        "{% macro m(f, x, n) %}{{ f(f, [x, x], n - 1) }}{% endmacro %}{{ m(m, 1, n) }}",
        "{% macro a(x) %}{{ b([x, x]) }}{% endmacro %}{% set b = a %}{{ a(1) }}",
        "{% macro o(x) %}{% macro i() %}{% endmacro %}{{ o([x, x]) }}{% endmacro %}",
        "{% macro o(x) %}{{ 'endmacro' }}{{ o([x, x]) }}{% endmacro %}",
        "{% macro m(x, y=[x]|tojson(9)) %}{% endmacro %}",
        "{% macro s(x) %}{{ caller(caller, x) }}{% endmacro %}",
        "{{ order|tojson(indent=n) }}",
        "{{ rows|map('tojson', n) }}",
        "{{ rows|map('to\\x6ason', n) }}",
        "{{ rows|map('to' ~ f, n) }}",
        "{{ rows|map('%s'|format(f), n) }}",
        "{{ rows|map(filter, n) }}",
        "{{ rows|map(*operands) }}",
        "{{ rows|sort(**options) }}",
        "{{ price * quantity }}",
        "{{ pattern.format(x) }}",
        "{{ pattern . format(x) }}",
        "{{ ('{:>' ~ width ~ '}').format(x) }}",
        "{{ text|wordwrap(width=9, wrapstring=line) }}",
        "{{ {'a': {'b': {'c': {'d': x}}}}|tojson(n) }}",
        "{% set x = {'a': {'b': {'c': {'d': x}}}} %}{{ {'a': {'b': {'c': {'d': y}}}}['a'].b.c.d * n }}",
        "{{ text|future_filter }}",
        "{{ text.future_method() }}",
        "{{ future_function() }}",
    ],
)
def test_a_template_whose_operations_may_take_much_work_for_small_operands_is_not_cheap(source: str) -> None:
    assert not is_cheap(source)


@pytest.mark.parametrize(
    "source",
    [
        "Write to yourself: namespace, recursive, self, tojson, 3 * 4 {# tojson #}",
        "{% macro icon(n) %}{{ n }}{% endmacro %}{% macro link(n) %}{{ icon(n) }}{% endmacro %}{{ link(1) }}",
        "{% from '_parts.html' import button, icon as small %}{{ button('Begin', url) }}{{ small(1) }}",
        "{% import '_parts.html' as parts %}{{ parts.button('Begin', url) }}",
        "{% for line in lines %}{{ line.names|map('upper')|map(attribute='a')|join }}{% endfor %}",
        "{% for k, v in order.items() %}{{ loop.index }}{{ k.upper() }}{% else %}-{% endfor %}",
        "{% if (a or b) and not (c is divisibleby(3)) %}{{ super() }}{% elif ('x' in d) %}{% endif %}",
        "{% extends '_base.html' %}{% block b %}{% include 'a.html' if wide else 'b.html' %}{% endblock %}",
        "{% filter upper %}{% set x | trim %} a {% endset %}{{ x }}{% endfilter %}",
        "{{ '{:.2f}'.format(price) }}{{ price|round(2) }}{{ '%s'|format(name) }}",
        "{{ (total - paid) / 2 + 1 ~ ' EUR' }}{{ prices[0:2][1] }}{{ {'a': {'b': 1}}['a'].b }}",
        "{%- for i in range(3) -%}{{ cycler(['a', 'b']).next }}{%- endfor -%}",
    ],
)
def test_an_ordinary_template_counts_as_cheap(source: str) -> None:
    assert is_cheap(source)
