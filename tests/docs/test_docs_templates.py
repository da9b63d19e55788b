"""The templates of docs/how-to/write-templates.md are written to a folder, and render as the page says."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jinja2
import pytest
from minijinja import Environment

from mailroom.channels.preview import Preview
from mailroom.content.engine import (
    FUEL,
    MAX_RENDERED_BYTES,
    SMALL_FUEL,
    SMALL_VARIABLES_BYTES,
    TemplateFault,
)
from mailroom.content.own_process import MAX_CPU_SECONDS, MAX_MEGABYTES
from mailroom.content.templates import MAX_ATTACHED_BYTES, MAX_VERSION_BYTES, engine_of
from mailroom.content.variables import values_of
from mailroom.errors import MAX_VARIABLES_BYTES
from mailroom_ops.templates.folder import TemplateFolder
from mailroom_stacks.templates.folder import TemplateName
from tests.support.docs_pages import Page

PAGE = Page("docs/how-to/write-templates.md")
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
def template_folder(tmp_path: Path) -> TemplateFolder:
    for path, source in files():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists():  # a later block shows a variation
            file.write_text(source)
    return TemplateFolder(tmp_path / "templates")


WELCOME = TemplateName("mail", "welcome")


def preview_welcome(folder: TemplateFolder, **more: str) -> Preview:
    folder = TemplateFolder(folder.root)  # the test may have written a file
    return folder.look(folder.item(WELCOME, {**folder.examples(WELCOME)["ada"], **more}))


def test_the_first_template_of_the_documentation_renders_with_its_example(
    template_folder: TemplateFolder,
) -> None:
    found = preview_welcome(template_folder)
    assert found.subject == "Welcome, Ada"
    assert found.text == "Dear Ada, your plan is team."
    assert found.html == "<p>Dear Ada, your plan is <b>team</b>.</p>"


def test_the_example_on_the_page_about_templates_renders_in_the_language_of_its_locale(
    template_folder: TemplateFolder,
) -> None:
    (template_folder.root / "mail/welcome/fr/body.txt").write_text("Bonjour")
    assert preview_welcome(template_folder, locale="fr-CA").subject == "Bienvenue"


def test_the_layout_on_the_page_about_templates_renders_with_the_blocks_of_a_template(
    template_folder: TemplateFolder,
) -> None:
    sources = dict(reversed([*files()]))
    (template_folder.root / "mail/_layout/address.html").write_text("Here")
    body = [text for path, text in files() if path == "templates/mail/welcome/body.html"][-1]
    (template_folder.root / "mail/welcome/body.html").write_text(body)
    found = TemplateFolder(template_folder.root).look(
        template_folder.item(WELCOME, {"first_name": "Ada", "start_url": "https://a.example"})
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
def test_a_template_renders_a_missing_variable_as_its_default_and_null_as_an_empty_string(
    template_folder: TemplateFolder, attributes: dict[str, object], source: str, written: str
) -> None:
    (template_folder.root / "mail/welcome/body.txt").write_text(source)
    item = template_folder.item(WELCOME, {"first_name": "Ada", **attributes})
    assert TemplateFolder(template_folder.root).look(item).text == written


def test_the_page_about_templates_lists_exactly_the_filters_tests_functions_and_methods_that_exist() -> None:
    section = PAGE.text.partition("### What a template may use")[2].partition("\n###")[0]
    listed = {
        kind: set(re.findall(r"`([a-z]+)`", names))
        for kind, names in re.findall(r"- \*\*(\w+)\*\*(.*?)\n(?=- |\n)", section, re.DOTALL)
    }
    known = {
        kind: set(re.findall(r'"([a-z]+)"', names))
        for kind, names in re.findall(
            r"(globals|tests|filters): [{\[](.*?)[}\]]",
            Environment().render_str("{{ debug() }}"),
            re.DOTALL,
        )
    }
    assert listed == {
        "filters": known["filters"],
        "tests": known["tests"],
        "functions": known["globals"] - {"debug"},
        "methods": {*_methods("text"), *_methods(["text"]), *_methods({"a": "b"})},
    }


def _methods(value: object) -> Iterator[str]:
    """Yield the methods of a value that a template may call."""
    for name in dir(type(value)):
        try:
            here(f"{{{{ value.{name}() }}}}", value=value)
            yield name
        except TemplateFault as fault:
            if not re.search("no method|is missing|insecure", f"{fault}"):
                yield name


ROWS = re.findall(
    r"^\| `([^`]+)`(?:, which gives `(.+?)`(?: in HTML)?)? \| `([^`]+)` \| `(.+?)` \|$",
    PAGE.text.replace(r"\|", "¦"),
    re.M,
)
ADA: dict[str, Any] = {
    "name": "Ada",
    "line": "one line of words",
    "code": "7",
    "quote": '"',
    "prices": [["a", 2], ["b", 3]],
}


def here(source: str, part: str = "a.txt", **variables: Any) -> str:
    return engine_of({part: source}).render(part, values_of(variables))


@pytest.mark.parametrize(("there", "gives_there", "instead", "gives"), ROWS)
def test_each_row_of_the_table_of_differences_from_jinja2_is_true_of_both_engines(
    there: str, gives_there: str, instead: str, gives: str
) -> None:
    there, instead = there.replace("¦", "|"), instead.replace("¦", "|")
    part = "a.html" if "&" in gives else "a.txt"
    assert here(instead, part, **ADA) == gives
    template = jinja2.Environment(autoescape=part == "a.html").from_string(there)
    rendered = template.render(ADA)
    if gives_there:
        assert rendered == gives_there
    else:
        assert rendered.splitlines()[0] == gives
        with pytest.raises(TemplateFault):
            here(there, **ADA)


def test_the_table_of_differences_from_jinja2_can_be_parsed() -> None:
    assert len(ROWS) == PAGE.text.partition("| in Jinja2 |")[2].partition("\n\n")[0].count("\n") - 1


def test_the_limits_on_the_page_about_templates_are_those_of_the_code() -> None:
    limits = [
        f"| a version | {MAX_VERSION_BYTES // 2**20} MiB,",
        f"| attached files of a template | {MAX_ATTACHED_BYTES // 1024} KB |",
        f"| variables | {MAX_VARIABLES_BYTES // 1024} KB:",
        f"| a rendering | {FUEL:,} steps",
        f"and {MAX_RENDERED_BYTES // 2**20} MiB for each part; {MAX_CPU_SECONDS:g} s of CPU time and "
        f"{MAX_MEGABYTES} MB",
    ]
    assert [limit for limit in limits if limit not in PAGE.text] == []
    small = f"more than {SMALL_VARIABLES_BYTES // 1024} KB of variables or {SMALL_FUEL:,} steps"
    assert small in Page("docs/reference/limits.md").text
