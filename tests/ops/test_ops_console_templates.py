"""The console's templates: shown with their examples, sent as tests; and the form, which shows the mail."""

from pathlib import Path
from typing import Any

import pytest

from mailroom_ops.console.pages import form, templates
from mailroom_ops.console.site import Frame, Goto, Request, Shown, Site
from mailroom_ops.shared.screen import Refused
from tests.support.ops.console import values_of
from tests.support.ops.message import Stage
from tests.support.unit.shelf import Shelf


@pytest.fixture
def stage(stage: Stage) -> Stage:
    stage.functions.environments = {"send-mail": {}, "send-sms": {}}
    return stage


@pytest.fixture(autouse=True)
def shelf_of_stage(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Shelf:
    root = tmp_path / "templates"
    shelf = Shelf(root / "mail")
    shelf.put("a", subject="Hello {{ name }}", html="<p>{{ name }}</p>", text="Dear {{ name }}")
    shelf.put("a/fr", subject="Bonjour {{ name }}", html="<p>{{ name }}</p>", text="x")
    (shelf.root / "a" / "examples").mkdir()
    for name in ("ada", "bob"):
        example = f'{{"name": "{name.title()}", "to": "{name}@example.com", "cc": "boss@example.com"}}'
        (shelf.root / "a" / "examples" / f"{name}.json").write_text(example)
    (root / "sms" / "code").mkdir(parents=True)
    (root / "sms" / "code" / "body.txt").write_text("Your code: {{ code }}")
    for module in (
        "mailroom_ops.console.pages.templates",
        "mailroom_ops.console.pages.form",
        "mailroom_ops.messages.items",
    ):
        monkeypatch.setattr(f"{module}.TEMPLATES", root)
    return shelf


def template_values(site: Site, **query: str) -> Any:
    found = templates.show(site, Request({"name": "a", **query}))
    assert isinstance(found, Shown)
    return values_of(found)


def test_the_console_lists_each_template_with_its_examples_languages_and_version(site: Site) -> None:
    found = templates.show(site, Request())
    assert isinstance(found, Shown)
    rows = [(each.path, *more) for each, *more in values_of(found)["rows"]]
    assert rows == [
        ("mail/a", 2, ["fr"], "the deployed template"),
        ("sms/code", 0, [], "the deployed template"),
    ]


def test_a_template_is_shown_with_its_first_or_the_selected_example(site: Site) -> None:
    assert template_values(site)["preview"].headers["Subject"] == "Hello Ada"
    assert template_values(site, example="bob", locale="fr")["preview"].headers["Subject"] == "Bonjour Bob"
    assert template_values(site)["variables"] == ["name"]
    assert template_values(site)["sources"]["a/body.txt"] == "  1  Dear {{ name }}"


def test_the_html_of_a_template_is_shown_in_a_frame(site: Site) -> None:
    assert templates.frame(site, Request({"name": "a", "example": "bob"})) == Frame("<p>Bob</p>")


def test_an_example_that_does_not_render_shows_its_error_with_file_and_line(
    site: Site, shelf_of_stage: Shelf
) -> None:
    shelf_of_stage.put("a", text="{{ city }}")
    assert "city: is missing" in template_values(site)["problem"]
    assert template_values(site)["faults"][0].startswith("templates/mail/a/body.txt:1: city: is missing")
    assert templates.frame(site, Request({"name": "a"})) == Frame("")


def send_to(site: Site, to: str, **query: str) -> Any:
    return templates.show(site, Request({"name": "a", **query}, {"step": "send", "to": to}))


def test_a_test_mail_goes_to_one_recipient_through_the_normal_lane_and_is_marked(
    site: Site, stage: Stage
) -> None:
    assert isinstance(send_to(site, "eve@example.com", example="bob"), Goto)
    ((id_, item),) = stage.mailbox().items()
    assert id_.startswith("test-mail-")
    assert (item["to"], item["name"], item["template"]) == ("eve@example.com", "Bob", "a")
    assert item["headers"] == {"X-Mailroom-Test": "a"}
    assert "cc" not in item
    assert "lane" not in item


@pytest.mark.parametrize("to", ["", "eve@", "a@example.com\nBcc: x@example.com"])
def test_a_test_mail_to_an_invalid_address_is_refused(site: Site, stage: Stage, to: str) -> None:
    with pytest.raises(Refused):
        send_to(site, to)
    assert stage.mailbox() == {}


def test_the_form_of_a_mail_lists_the_templates_and_previews_the_selected_one(site: Site) -> None:
    offered = form.show(site, Request({"channel": "mail"}))
    assert isinstance(offered, Shown)
    assert values_of(offered)["templates"] == ["a"]
    typed = {"to": "ada@example.com", "template": "a", "variables": "name=Ada\nshoe=7", "step": "preview"}
    look = form.show(site, Request({"channel": "mail"}, typed))
    assert isinstance(look, Shown)
    assert values_of(look)["preview"].subject == "Hello Ada"
    assert values_of(look)["preview"].unused == ["shoe"]
    assert form.frame(site, Request({"document": values_of(look)["document"]})) == Frame("<p>Ada</p>")
    assert form.frame(site, Request({"document": "x"})) == Frame("")


def test_the_number_of_previewed_mails_in_memory_is_bounded(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(form, "MAX_DOCUMENTS", 2)
    typed = {"to": "ada@example.com", "template": "a", "variables": "name=Ada", "step": "preview"}
    for _ in range(3):
        form.show(site, Request({"channel": "mail"}, typed))
    assert len(site.documents) == 2


def test_the_form_of_a_mail_refuses_an_unknown_template_at_its_field(site: Site) -> None:
    typed = {"to": "ada@example.com", "template": "nosuch", "step": "preview"}
    found = form.show(site, Request({"channel": "mail"}, typed))
    assert isinstance(found, Shown)
    assert values_of(found)["faults"] == {"template": "template: 'nosuch' is unknown; use one of: a"}
