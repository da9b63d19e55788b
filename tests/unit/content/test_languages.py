"""A template in several languages, its published versions, and the variables that it uses."""

from pathlib import Path
from typing import Any

import pytest

from mailroom.channels.contracts import CONTRACTS
from mailroom.channels.mail.contract import Mail
from mailroom.content.payloads import Payloads
from mailroom.content.templates import MAX_COMPILED, Templates, canonical
from mailroom.errors import Invalid
from mailroom.message.message import parse
from tests.support.unit.publishing import publish
from tests.support.unit.shared import TEMPLATES as BUCKET
from tests.support.unit.shared import Aws
from tests.support.unit.shelf import Shelf


def in_languages(shelf: Shelf, *languages: str) -> Templates:
    shelf.put("a", subject="Hello {{ name }}", text="own")
    for each in languages:
        shelf.put(f"a/{each}", subject=f"{each} {{{{ name }}}}", text=each)
    return Templates(shelf.root)


@pytest.mark.parametrize(
    ("locale", "used"),
    [
        (None, "own"),
        ("fr", "fr"),
        ("fr-CA", "fr-CA"),
        ("FR-ca", "fr-CA"),
        ("fr-BE", "fr"),
        ("zh-Hant-TW", "zh-Hant"),
        ("zh-Hans-CN", "own"),
        ("fr-x-private", "fr"),
        ("de", "own"),
        ("qq-Qqqq-QQ", "own"),
    ],
)
def test_a_locale_selects_the_nearest_existing_language(shelf: Shelf, locale: str, used: str) -> None:
    templates = in_languages(shelf, "fr", "fr-CA", "zh-Hant")
    found = templates.render("a", {"name": "Ada"}, locale=locale)
    assert found.text == used
    assert found.subject == ("Hello Ada" if used == "own" else f"{used} Ada")
    assert templates.text("a", {"name": "Ada"}, locale=locale) == used


def test_a_template_in_a_language_lacks_the_parts_that_exist_only_in_the_default_language(
    shelf: Shelf,
) -> None:
    shelf.put("a", subject="Hello", text="own", html="<p>own</p>")
    shelf.put("a/fr", subject="Bonjour", text="fr")
    assert Templates(shelf.root).render("a", {}, locale="fr").html is None


@pytest.mark.parametrize(
    ("tag", "folder"), [("FR", "fr"), ("zh-hant-tw", "zh-Hant-TW"), ("es-419", "es-419")]
)
def test_a_language_folder_has_the_canonical_form_of_its_tag(tag: str, folder: str) -> None:
    assert canonical(tag) == folder


def test_the_variables_of_a_template_include_the_variables_of_the_parts_that_it_refers_to(
    shelf: Shelf,
) -> None:
    shelf.put("_layout", html="{{ brand }}{% block body %}{% endblock %}")
    shelf.put("_line", html="{{ line.sku }}")
    shelf.put(
        "a",
        subject="{{ name }}",
        html="{% extends '_layout/body.html' %}{% block body %}"
        "{% for line in lines %}{% include '_line/body.html' %}{% endfor %}{% endblock %}",
    )
    assert Templates(shelf.root).used("a") == {"name", "brand", "lines", "line"}


def test_the_variables_of_a_part_that_includes_itself_can_be_listed(shelf: Shelf) -> None:
    shelf.put("a", subject="Hi", text="{% if again %}{% include 'a/body.txt' %}{% endif %}")
    assert Templates(shelf.root).used("a") == {"again"}


def mail_in_language(**more: Any) -> Mail:
    message = parse(
        {"id": "m", "event_type": "mail", "to": "a@example.com", "template": "a", **more}, CONTRACTS
    )
    assert isinstance(message, Mail)
    return message


def test_a_misspelt_attribute_is_accepted_as_a_variable_if_the_template_uses_it(shelf: Shelf) -> None:
    shelf.put("a", subject="{{ sendAt }}", text="Hi")
    message = mail_in_language(sendAt="noon")
    assert message.misspelt() == {"sendAt": "send_at"}
    templates = Templates(shelf.root)
    templates.check_names(message)
    assert templates.render("a", message.variables).subject == "noon"


def test_a_misspelt_attribute_is_refused_if_the_template_does_not_use_it(shelf: Shelf) -> None:
    templates = in_languages(shelf)
    with pytest.raises(Invalid, match=r"sendAt: is not used here; did you mean `send_at`\?"):
        templates.check_names(mail_in_language(sendAt="noon", name="Ada"))


def test_a_strict_stage_refuses_unused_attributes(shelf: Shelf) -> None:
    templates = in_languages(shelf)
    templates.check_names(mail_in_language(name="Ada"), strict=True)
    with pytest.raises(Invalid, match=r"shoe: is not used, and `items.unknown` refuses unused attributes"):
        templates.check_names(mail_in_language(name="Ada", shoe=7), strict=True)


@pytest.fixture
def templates_in_languages(aws: Aws, shelf: Shelf) -> Templates:
    root = shelf.root / "mail"
    Shelf(root).put("a", subject="Bundled", text="bundled")
    return Templates(root, Payloads(aws.s3, BUCKET))


def test_a_published_template_version_is_rendered_only_with_the_parts_of_that_version(
    aws: Aws, templates_in_languages: Templates
) -> None:
    publish(
        aws, 7, "{% include '_x/body.txt' %} seven", **{"_x/body.txt": "shared", "a/fr/subject.txt": "Fr"}
    )
    assert templates_in_languages.render("a", {}, version=7).text == "shared seven"
    assert templates_in_languages.render("a", {}).text == "bundled"
    assert templates_in_languages.text("a", {}, version=7) == "shared seven"
    assert "x" in templates_in_languages.used("a", version=publish(aws, 8, "{{ x }}").number)


def test_a_message_with_an_unknown_template_version_is_refused(
    templates_in_languages: Templates, shelf: Shelf
) -> None:
    with pytest.raises(Invalid, match=r"template_version: 'a' has no version 9; leave it out"):
        templates_in_languages.render("a", {}, version=9)
    with pytest.raises(Invalid, match=r"template_version: is set, but this stage does not publish templates"):
        Templates(shelf.root).render("a", {}, version=9)


def test_a_template_version_is_read_once_and_the_number_of_versions_in_memory_is_bounded(
    aws: Aws, templates_in_languages: Templates
) -> None:
    for number in range(1, MAX_COMPILED + 11):
        publish(aws, number, f"text {number}")
        assert templates_in_languages.render("a", {}, version=number).text == f"text {number}"
    kept = templates_in_languages._versions.cache_info()
    assert kept.currsize == MAX_COMPILED
    aws.s3.delete_object(Bucket=BUCKET, Key=publish(aws, MAX_COMPILED + 10, "").key)
    assert (
        templates_in_languages.render("a", {}, version=MAX_COMPILED + 10).text == f"text {MAX_COMPILED + 10}"
    )


def test_the_variables_of_a_bundled_template_are_computed_once(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf.put("a", subject="{{ name }}", text="Hi")
    monkeypatch.chdir(shelf.root)
    templates = Templates(Path())
    assert templates.used("a") == {"name"}
    shelf.put("a", subject="{{ other }}")
    assert templates.used("a") == {"name"}
    assert Templates(shelf.root).used("a") == {"other"}
