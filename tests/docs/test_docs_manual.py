"""`mailroom docs`: every page, link and sentence leads to a page that the command shows."""

import os
import re
from pathlib import Path

from typer.testing import CliRunner

from mailroom_ops.cli import app
from mailroom_ops.setup import docs
from mailroom_ops.setup.docs import INDEX, name_of
from tests.support import ROOT
from tests.support.docs_pages import Page, docs_pages

PRODUCT = ("app.py", "campaigns", "lambdas", "mailroom_local", "mailroom_ops", "stacks")
NAMED = re.compile(r"`mailroom\s+docs\s+([^`{\s]+)`")
"""Name that a text gives to the command. A name that code completes is in no text yet."""


def product_texts() -> dict[str, str]:
    """Return every text of the product, with the files of a new folder, by its path."""
    below = (file for place in PRODUCT for file in [ROOT / place, *(ROOT / place).rglob("*")])
    suffixes = {".py", ".md", ".yml", ".html", ".js", ".json"}
    return {
        str(file.relative_to(ROOT)): file.read_text()
        for file in below
        if file.is_file() and file.suffix in suffixes and "assets" not in file.parts
    }


def docs_output(*words: str) -> str:
    result = CliRunner().invoke(app, ["docs", *words])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_each_documentation_page_that_an_output_text_of_the_product_names_exists() -> None:
    named = {(path, name) for path, text in product_texts().items() for name in NAMED.findall(text)}
    assert len(named) > 20
    assert [(path, name) for path, name in sorted(named) if name_of(name) not in docs.pages()] == []


def test_a_sentence_of_the_product_does_not_name_a_page_by_its_path_in_the_repository() -> None:
    wrong = [
        path for path, text in product_texts().items() if re.search(r"(?<![\w/.])docs/[\w/-]+\.md", text)
    ]
    assert wrong == []


def test_the_command_docs_finds_a_page_by_a_link_to_it_or_to_one_of_its_sections() -> None:
    links = {(link, (ROOT / page.path).parent) for page in docs_pages() for link in page.links()}
    for link, folder in links:
        target = (folder / link.partition("#")[0]).resolve()
        if target in docs.pages().values():
            assert docs.pages()[name_of(link)] == target, link
    assert docs_output("deploy-update-go-back.md#taking-parts-out") == docs_output("deploy-update-go-back")


def test_the_command_docs_without_a_name_lists_every_page_except_those_of_alarms() -> None:
    text = docs_output()
    assert text == docs_output(INDEX)
    files = {page.path for page in docs_pages()} - {"docs/README.md"}
    listed = {
        os.path.relpath((ROOT / "docs" / link.partition("#")[0]).resolve(), ROOT)
        for link in Page("docs/README.md").links()
    }
    alarms = {path for path in files if path.startswith("docs/alarms/")}
    assert len(alarms) > 10
    assert listed == files - alarms
    for path in listed:
        assert name_of(path) in docs.pages()
        assert Path(path).name in text


def test_the_command_docs_shows_a_page_with_all_its_headings() -> None:
    text, page = docs_output("gave-up"), Page("docs/alarms/gave-up.md")
    headings = re.findall(r"^#+ (.+)$", page.prose, re.MULTILINE)
    assert len(headings) > 3
    for heading in headings:
        assert heading.replace("`", "") in text


def test_the_command_docs_prints_a_json_file_unchanged_and_its_path_with_the_option_path() -> None:
    file = ROOT / "docs" / "reference" / "support.policy.json"
    assert docs_output("support.policy.json") == file.read_text()
    assert docs_output("support.policy.json", "--path") == f"{file}\n"


def test_the_command_docs_refuses_an_unknown_name_and_names_the_list_of_pages() -> None:
    result = CliRunner().invoke(app, ["docs", "no such page"])
    assert result.exit_code == 2
    assert result.stderr == "There is no page 'no such page'. `mailroom docs` lists the pages.\n"
