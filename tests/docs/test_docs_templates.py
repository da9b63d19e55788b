"""The templates of docs/templates.md are written to a folder, and render as the page says."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from mailroom.channels.preview import Preview
from mailroom_ops.templates.folder import TemplateFolder, TemplateName
from tests.support.docs_pages import Page

PAGE = Page("docs/templates.md")
ONE_LINE = re.compile(r"(templates/\S+) {2,}(\S.*)")


def files() -> Iterator[tuple[str, str]]:
    """Each file that a block of the page has, by its path: behind the path, or indented below it."""
    for block in re.findall(r"```\n(templates/.*?)```", PAGE.text, re.DOTALL):
        path, lines = "", list[str]()
        for line in block.splitlines():
            if alone := ONE_LINE.fullmatch(line):
                yield alone[1], alone[2]
            elif line.startswith("templates/"):
                if path:
                    yield path, "\n".join(lines)
                path, lines = line, []
            else:
                lines.append(line.removeprefix("    "))
        if path and lines:
            yield path, "\n".join(lines)


@pytest.fixture
def folder(tmp_path: Path) -> TemplateFolder:
    for path, source in files():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists():  # a later block shows a variation
            file.write_text(source)
    return TemplateFolder(tmp_path / "templates")


WELCOME = TemplateName("mail", "welcome")


def look(folder: TemplateFolder, **more: str) -> Preview:
    return folder.look(folder.item(WELCOME, {**folder.examples(WELCOME)["ada"], **more}))


def test_the_first_template_renders_with_its_example(folder: TemplateFolder) -> None:
    found = look(folder)
    assert found.subject == "Welcome, Ada"
    assert found.text == "Dear Ada, your plan is team."
    assert found.html == "<p>Dear Ada, your plan is <b>team</b>.</p>"


def test_the_language_of_the_page_is_chosen(folder: TemplateFolder) -> None:
    (folder.root / "mail/welcome/fr/body.txt").write_text("Bonjour")
    assert look(folder, locale="fr-CA").subject == "Bienvenue"


def test_the_layout_of_the_page_is_filled(folder: TemplateFolder) -> None:
    sources = dict(reversed([*files()]))
    (folder.root / "mail/_layout/address.html").write_text("Here")
    body = [text for path, text in files() if path == "templates/mail/welcome/body.html"][-1]
    (folder.root / "mail/welcome/body.html").write_text(body)
    found = TemplateFolder(folder.root).look(
        folder.item(WELCOME, {"first_name": "Ada", "start_url": "https://a.example"})
    )
    assert re.sub(r"\s+", " ", found.html or "").strip() == (
        '<body><p>Dear Ada</p><a href="https://a.example">Begin</a><footer>Here</footer></body>'
    )
    assert "templates/mail/_layout/parts.html" in sources


@pytest.mark.parametrize(
    ("attributes", "source", "written"),
    [
        ({}, '{{ plan | default("free") }}', "free"),
        ({}, "{% if plan is defined %}x{% endif %}-", "-"),
        ({"plan": None}, "[{{ plan }}]", "[]"),
        ({"plan": False}, "{{ plan }}", "False"),
        ({"plan": 0}, "{{ plan }}", "0"),
    ],
)
def test_missing_and_empty_variables_are_as_the_table_says(
    folder: TemplateFolder, attributes: dict[str, object], source: str, written: str
) -> None:
    (folder.root / "mail/welcome/body.txt").write_text(source)
    assert folder.look(folder.item(WELCOME, {"first_name": "Ada", **attributes})).text == written
