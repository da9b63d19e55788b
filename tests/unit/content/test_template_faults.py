"""Templates: what is at fault, in words that a producer understands."""

import pytest

from mailroom.content.templates import Templates
from mailroom.errors import Invalid
from tests.support.unit.shelf import Shelf


def test_the_error_about_a_missing_variable_names_the_variable_and_the_part_that_uses_it(
    shelf: Shelf,
) -> None:
    shelf.put("a", subject="Hello", html="{{ first_name }}")
    with pytest.raises(Invalid) as caught:
        shelf.render(last_name="van Gogh")
    assert caught.value.field == "first_name"
    assert caught.value.problem == "is missing; a/body.html:1 uses it, so the message must have it"


def test_the_error_about_a_missing_variable_in_an_expression_names_the_variable(shelf: Shelf) -> None:
    for source in (
        "{{ user.name }}",
        "{% for x in user %}{% endfor %}",
        "{% if user == 1 %}{% endif %}",
        "{{ user + 1 }}",
    ):
        problem = shelf.problem(f"one\n{source}")
        assert problem == "user: is missing; a/body.txt:2 uses it, so the message must have it"


@pytest.mark.parametrize("user", [{}, {"first": "Ada"}, []])
def test_the_error_about_a_missing_entry_of_a_variable_names_the_path_of_the_entry(
    shelf: Shelf, user: object
) -> None:
    problem = shelf.problem("{{ user.name }}", user=user)
    assert problem == "user.name: is missing; a/body.txt:1 uses it, so the message must have it"


def test_an_unknown_template_is_refused_and_the_error_names_the_known_templates(shelf: Shelf) -> None:
    for name in ("welcome", "bill", "_shared"):
        shelf.put(name, subject="Hello", text="Hi")
    (shelf.root / "empty").mkdir()
    templates = Templates(shelf.root)
    assert templates.names() == ["bill", "welcome"]
    with pytest.raises(Invalid) as caught:
        templates.render("welcom", {})
    assert str(caught.value) == "template: 'welcom' is unknown; use one of: bill, welcome"


@pytest.mark.parametrize("name", ["..", "../a", "/etc", "a/../a"])
def test_a_template_name_that_is_a_path_is_refused_as_unknown(shelf: Shelf, name: str) -> None:
    shelf.put("a", subject="Hello", text="Hi")
    with pytest.raises(Invalid, match="is unknown"):
        Templates(shelf.root / "a").render(name, {})


def test_a_template_without_a_body_is_refused_with_the_files_to_add(shelf: Shelf) -> None:
    shelf.put("a", subject="Hello")
    with pytest.raises(Invalid, match=r"template: 'a' has neither body\.html nor body\.txt; add one"):
        shelf.render()


def test_the_error_about_a_template_with_invalid_syntax_names_the_part_and_the_line(shelf: Shelf) -> None:
    assert shelf.problem("\n{% for %}").startswith("template: a/body.txt:2 cannot be read: unexpected ")


@pytest.mark.parametrize("break_", ["\n", "\r\n", "\r", "\u2028", "\0"])
def test_a_line_break_in_a_rendered_subject_is_refused(shelf: Shelf, break_: str) -> None:
    shelf.put("a", subject="To {{ name }}", text="Hi")
    with pytest.raises(Invalid) as caught:
        shelf.render(name=f"Theo{break_}Bcc: b@example.com")
    expected = "subject: holds a line break when rendered; its variables must be one line each"
    assert str(caught.value) == expected


@pytest.mark.parametrize("name", ["", "  ", None])
def test_a_subject_that_is_empty_after_rendering_is_refused(shelf: Shelf, name: str | None) -> None:
    shelf.put("a", subject="{{ name }}", text="Hi")
    with pytest.raises(Invalid, match="subject: is empty after rendering template 'a'; check its variables"):
        shelf.render(name=name)
