"""`mailroom docs`: every page, link and sentence leads to a place that the command shows."""

import os
import re
from pathlib import Path

from typer.testing import CliRunner

from mailroom_ops.cli import app
from mailroom_ops.setup import docs
from mailroom_ops.setup.docs import INDEX, find, page_of
from tests.support import ROOT
from tests.support.docs_pages import Page, pages

PRODUCT = ("app.py", "campaigns", "lambdas", "mailroom_local", "mailroom_ops", "stacks")
NAMED = re.compile(r"`mailroom docs ([^`{\s]+)`")
"""Word that a text gives to the command. A word that code completes is in no text yet."""


def texts() -> dict[str, str]:
    """Return every text of the product, with the files of a new folder, by its path."""
    below = (file for place in PRODUCT for file in [ROOT / place, *(ROOT / place).rglob("*")])
    suffixes = {".py", ".md", ".yml", ".html", ".js", ".json"}
    return {
        str(file.relative_to(ROOT)): file.read_text()
        for file in below
        if file.is_file() and file.suffix in suffixes and "assets" not in file.parts
    }


def shown(*words: str) -> str:
    result = CliRunner().invoke(app, ["docs", *words])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_every_page_in_a_sentence_of_the_product_exists() -> None:
    named = {(path, word) for path, text in texts().items() for word in NAMED.findall(text)}
    assert len(named) > 20
    assert [(path, word) for path, word in sorted(named) if len(find(word)) != 1] == []


def test_sentences_of_the_product_do_not_mention_files_that_an_installation_lacks() -> None:
    wrong = [path for path, text in texts().items() if re.search(r"(?<![\w/.])docs/[\w/-]+\.md", text)]
    assert wrong == []


def test_the_target_of_a_link_is_found_by_the_word_of_the_link() -> None:
    links = {(link, (ROOT / page.path).parent) for page in pages() for link in page.links()}
    for link, folder in links:
        file, _, anchor = link.partition("#")
        target = (folder / file).resolve()
        if file and target in docs.pages().values():
            (section,) = find(link)
            assert docs.pages()[section.page] == target, link
            assert not anchor or section.word.endswith(f"#{anchor}"), link


def test_the_command_without_a_word_lists_every_page_except_those_of_alarms() -> None:
    text = shown()
    assert text == shown(INDEX)
    files = {page.path for page in pages()} - {"docs/README.md"}
    listed = {
        os.path.relpath((ROOT / "docs" / link).resolve(), ROOT) for link in Page("docs/README.md").links()
    }
    alarms = {path for path in files if path.startswith("docs/alarms/") and "README" not in path}
    assert len(alarms) > 10
    assert listed == files - alarms
    for path in listed:
        assert page_of(path) in docs.pages()
        assert Path(path).name in text


def test_a_section_is_shown_by_its_link_and_by_words_of_its_heading() -> None:
    text = shown("deploy-update-go-back.md#taking-parts-out")
    assert text.startswith("Taking parts out")
    assert "Restoring a table" not in text
    assert shown("taking parts") == text


def test_an_ambiguous_word_is_answered_with_the_commands_of_its_sections() -> None:
    commands = shown("what it means").splitlines()
    assert "mailroom docs gave-up#what-it-means" in commands
    for command in commands:
        assert len(find(command.removeprefix("mailroom docs "))) == 1, command


def test_a_comment_in_a_block_of_commands_is_no_heading() -> None:
    text = "# Page\n```sh\n# first\n```\n## Second\n"
    assert [section.heading for section in docs.sections("page", text)] == ["Page", "Second"]


def test_a_file_beside_the_pages_is_printed_unchanged_and_its_path_on_request() -> None:
    file = ROOT / "docs" / "reference" / "support.policy.json"
    assert shown("support.policy.json") == file.read_text()
    assert shown("support.policy.json", "--path") == f"{file}\n"


def test_an_unknown_word_is_refused_with_the_command_that_lists_the_pages() -> None:
    result = CliRunner().invoke(app, ["docs", "no such words"])
    assert result.exit_code == 2
    assert result.stderr == "No page has 'no such words'. `mailroom docs` lists the pages.\n"
