"""Templates: how their files are read, and which variables and parts they name."""

from pathlib import Path

import pytest

from mailroom.content.engine import TemplateFault
from mailroom.content.source import Reference, references, strict
from mailroom.content.templates import Templates, engine_of
from tests.support.unit.shelf import Shelf

BOM = b"\xef\xbb\xbf"


def write(root: Path, content: bytes, name: str = "a/body.txt") -> None:
    (root / name).parent.mkdir(exist_ok=True)
    (root / name).write_bytes(content)


@pytest.mark.parametrize("absolute", [True, False])
def test_a_byte_order_mark_is_dropped_and_line_ends_are_normalized(
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


@pytest.mark.parametrize("content", [b"Dear \xe9", "Dear {{ name }}".encode("utf-16"), b"\xff\xfe"])
def test_the_error_about_a_file_that_is_not_utf_8_names_the_file(tmp_path: Path, content: bytes) -> None:
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


def test_a_change_of_a_template_file_takes_effect_in_the_next_mail(shelf: Shelf) -> None:
    shelf.put("_parts", text="{{ name }}")
    shelf.put("a", subject="Hello", text="{% include '_parts/body.txt' %}!")
    templates = Templates(shelf.root)
    assert templates.render("a", {"name": "Ada"}).text == "Ada!"
    shelf.put("_parts", text="Dear {{ name }}")
    assert templates.render("a", {"name": "Ada"}).text == "Dear Ada!"


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
def test_the_template_names_in_a_tag_are_found(tag: str, names: list[str], is_open: bool) -> None:
    (reference,) = references(f"{{# {tag} #}}{{% raw %}}{tag}{{% endraw %}}{tag}")
    assert (reference.names, reference.open) == (names, is_open)


@pytest.mark.parametrize("source", ["{% include_x %}", "{{ include }}", "{% set x = 'include' %}", "include"])
def test_a_tag_without_a_template_name_has_no_reference(source: str) -> None:
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
    used = engine_of(shelf.root).variables(["a/body.txt"])
    assert used == {"base", "seen", "foot", "name", "lines", "items"}


def test_a_condition_may_select_among_constant_parts(shelf: Shelf) -> None:
    shelf.put("a", text="{% include '_parts/body.txt' if wide else '_parts/body.html' %}")
    shelf.put("_parts", text="{{ one }}", html="{{ two }}")
    assert engine_of(shelf.root).variables(["a/body.txt"]) == {"wide", "one", "two"}


@pytest.mark.parametrize(
    ("code", "argument"),
    [
        ("{% include '_parts/' ~ kind %}", "the name of a template"),
        ("{% include names ignore missing %}", "the name of a template"),
        ("{{ rows|sort(attribute=field) }}", "an attribute"),
        ("{{ rows | map( attribute = field ) }}", "an attribute"),
        ("{{ order|tojson(indent=width) }}", "an indentation"),
        ("{{ order|tojson(width) }}", "an indentation"),
        ("{{ pattern.format(name) }}", "a pattern of format"),
        ("{{ ('{:>' ~ width ~ '}').format(name) }}", "a pattern of format"),
    ],
)
def test_an_argument_with_unbounded_cost_may_not_come_from_a_variable(code: str, argument: str) -> None:
    (fault,) = engine_of({"a.txt": f"{{# {code} #}}\n{code}"}).faults()
    assert fault.sentence == f"a.txt:2 takes {argument} from a variable; use literals and `if` instead"


@pytest.mark.parametrize(
    "code",
    [
        "{{ rows|sort(attribute='price') }}",
        "{{ order|tojson }}{{ order|tojson() }}{{ order|tojson(indent=2) }}{{ order|tojson(2) }}",
        "{{ '{:>9}'.format(name) }}{{ '%s'|format(name) }}{{ format }}{{ 'x.format(y)' }}",
    ],
)
def test_a_constant_argument_is_not_reported_as_a_fault(code: str) -> None:
    assert [*engine_of({"a.txt": code}).faults()] == []


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
