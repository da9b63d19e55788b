"""Templates: what comes out."""

from decimal import Decimal

import pytest

from mailroom.content.templates import FILES, Content, Templates, engine_of
from tests.support.unit.shelf import OURS, Shelf


def test_a_template_renders_its_subject_its_html_body_and_its_text_body(shelf: Shelf) -> None:
    shelf.put("a", subject=" To {{ name }}\n", html="<p>{{ name }}</p>", text="Dear {{ name }}")
    assert shelf.render(name="Theo") == Content("To Theo", "<p>Theo</p>", "Dear Theo")


def test_a_template_without_a_text_body_renders_without_a_text(shelf: Shelf) -> None:
    shelf.put("a", subject="Hello", html="<p>Hi</p>")
    assert shelf.render() == Content("Hello", "<p>Hi</p>", None)


def test_variables_are_escaped_in_html_and_not_in_text_or_subject(shelf: Shelf) -> None:
    shelf.put("a", subject="{{ x }}", html="{{ x }}", text="{{ x }}")
    found = shelf.render(x='<b>"O\'Hara" & co</b>')
    assert found.subject == found.text == '<b>"O\'Hara" & co</b>'
    assert found.html == "&lt;b&gt;&quot;O&#x27;Hara&quot; &amp; co&lt;/b&gt;"


def test_variables_are_escaped_in_an_included_html_part(shelf: Shelf) -> None:
    shelf.put("_shared", html="<i>{{ x }}</i>")
    shelf.put("a", subject="Hello", html="{% include '_shared/body.html' %}")
    assert shelf.render(x="<b>").html == "<i>&lt;b&gt;</i>"


def test_a_template_may_extend_a_shared_template(shelf: Shelf) -> None:
    shelf.put("_shared", text="Dear {{ name }}, {% block body %}{% endblock %} Bye")
    source = "{% extends '_shared/body.txt' %}{% block body %}welcome.{% endblock %}"
    assert shelf.text(source, name="Theo") == "Dear Theo, welcome. Bye"


def test_a_null_renders_as_an_empty_text_and_zero_and_false_do_not(shelf: Shelf) -> None:
    assert shelf.text("[{{ a }}|{{ b }}|{{ c }}|{{ d }}]", a=None, b=0, c=False, d="") == "[|0|False|]"


def test_a_template_can_write_numbers_nested_attributes_and_entries_of_lists(shelf: Shelf) -> None:
    source = "{{ price }} {{ user.name }} {{ list[1] }} {{ n * 2 }}"
    variables = {"price": Decimal("9.90"), "user": {"name": "Theo"}, "list": ["a", "b"], "n": 21}
    assert shelf.text(source, **variables) == "9.9 Theo b 42"


def test_a_rendering_does_not_leave_its_variables_for_the_next_rendering(shelf: Shelf) -> None:
    shelf.put("a", subject="Hello", text="{% if first is defined %}{{ first }}{% else %}none{% endif %}")
    templates = Templates(shelf.root)
    assert templates.render("a", {"first": "Theo"}).text == "Theo"
    assert templates.render("a", {}).text == "none"


def test_a_variable_set_in_one_part_is_undefined_in_another_part(shelf: Shelf) -> None:
    shelf.put("a", subject="{% set x = 'leak' %}Hello", text="{{ x is defined }}")
    assert shelf.render().text == "False"


def test_a_rendering_does_not_change_the_variables_of_its_caller(shelf: Shelf) -> None:
    variables = {"name": "Theo"}
    shelf.put("a", subject="Hello", text="{% set name = 'x' %}{% set other = 1 %}{{ name }}")
    assert shelf.render(**variables).text == "x"
    assert variables == {"name": "Theo"}


def test_an_attribute_may_be_named_like_a_word_of_the_template_language(shelf: Shelf) -> None:
    names = ("range", "dict", "self_", "loop", "context", "environment", "name", "values", "items")
    for name in names:
        assert shelf.text(f"{{{{ {name} }}}}", **{name: "mine"}) == "mine"


NO_TEXTS = {"new_followers": 3, "followers": ["<followers>", "Eve"]}
"""Variables of ours that are not texts."""


@pytest.mark.parametrize("name", Templates(OURS).names())
def test_every_template_of_the_repository_renders_from_its_variables_only(name: str) -> None:
    wanted = engine_of(OURS).variables(*(f"{name}/{file}" for file in FILES))
    content = Templates(OURS).render(name, {each: NO_TEXTS.get(each, f"<{each}>") for each in wanted})
    assert content.subject
    assert content.html or content.text
    assert "{{" not in f"{content}"
    for each in wanted:
        assert f"<{each}>" not in (content.html or "")


def test_the_default_template_needs_only_the_attributes_of_the_smallest_item() -> None:
    content = Templates(OURS).render(
        "default", {"email": "vincent@example.com", "first_name": "Vincent", "last_name": "van Gogh"}
    )
    assert content.subject == "Vincent, there is a message for you"
    assert "Dear Vincent van Gogh," in (content.text or "")
    assert "Dear Vincent van Gogh," in (content.html or "")
