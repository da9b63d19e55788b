"""Names in the documentation exist: pages that it links, make targets, tests, alarms, metrics."""

import ast
import json
import re
import subprocess
import tomllib

import pytest

from tests.support import ROOT
from tests.support.docs_pages import Block, Page, docs_pages

PATHS = [page.path for page in docs_pages()]
KINDS = sorted(page.stem for page in (ROOT / "docs" / "alarms").glob("*.md"))
"""Kinds of alarms."""


@pytest.mark.parametrize("path", PATHS)
def test_every_relative_link_of_a_documentation_page_has_an_existing_target(path: str) -> None:
    for target in Page(path).links():
        if re.match(r"[a-z]+:", target):
            assert target.startswith("https://"), target
            continue
        file, _, anchor = target.partition("#")
        there = (ROOT / path).parent / file if file else ROOT / path
        assert there.exists(), f"{path}: {target}"
        if anchor:
            anchors = Page(str(there.resolve().relative_to(ROOT))).anchors()
            assert anchor in anchors, f"{path}: {target}"


def test_each_promise_on_the_page_never_twice_has_a_row_that_links_to_its_tests() -> None:
    page = Page("docs/explanation/never-twice.md").prose
    promises = re.findall(r"^(\d)\. \*\*", page, re.M)
    shown = re.findall(r"^\| (\d) \| \[[^]]+]\(\.\./\.\./tests/(?:unit|faults|pipeline)/", page, re.M)
    assert promises == shown == ["1", "2", "3", "4", "5", "6"]


@pytest.mark.parametrize("path", PATHS)
def test_every_make_target_that_a_documentation_page_names_exists(path: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    page = Page(path)
    lines = [*page.command_lines(), *(span.split() for span in page.spans())]
    named = {words[1] for words in lines if len(words) > 1 and words[0] == "make" and "=" not in words[1]}
    assert named <= targets


@pytest.mark.parametrize("path", PATHS)
def test_every_python_json_toml_and_shell_block_of_a_documentation_page_can_be_parsed(path: str) -> None:
    for block in Page(path).blocks("python", "json", "toml", "sh"):
        try:
            _read(block)
        except (ValueError, SyntaxError) as error:
            raise AssertionError(f"{path}: {block.text}") from error


def test_every_word_of_the_glossary_is_unique_and_has_a_link() -> None:
    rows = re.findall(r"^\| (.+?) \| .+ \|$", Page("docs/reference/words.md").prose, re.M)
    links = [re.fullmatch(r"\[([a-z ]+)\]\(\.\./[\w/.]+\)", row) for row in rows if row != "word"]
    words = [link[1] for link in links if link]
    assert len(words) == len(links) == len(set(words))
    assert {"message", "channel", "mailbox", "ledger", "attempt", "lane", "dead letter"} <= {*words}


@pytest.mark.parametrize("kind", KINDS)
def test_each_page_of_an_alarm_has_the_five_sections_a_command_and_a_link_from_the_operate_page(
    kind: str,
) -> None:
    page = Page(f"docs/alarms/{kind}.md")
    headings = re.findall(r"^## (.+)$", page.prose, re.M)
    assert headings == [
        "What it means",
        "First look",
        "Fix it",
        "How it ends",
        "What is lost meanwhile",
    ]
    assert [words for words in page.command_lines() if words], "no command to look with"
    assert f"{kind}.md" in Page("docs/how-to/operate.md").text


def test_every_metric_that_a_function_counts_is_listed_on_the_operate_page() -> None:
    counted = re.compile(r'(?:\b(?:count|count_by|record_duration|note)\(|counts\[)\s*"([A-Z]\w+)"')
    text = Page("docs/how-to/operate.md").text
    names = {name for file in (ROOT / "lambdas").rglob("*.py") for name in counted.findall(file.read_text())}
    assert len(names) > 40
    assert {name for name in names if f"`{name}`" not in text} == set()


def _read(block: Block) -> None:
    match block.kind:
        case "python":
            ast.parse(block.text)
        case "toml":
            tomllib.loads(block.text)
        case "json":
            _json(block.text)
        case "sh":
            text = re.sub(r"<[\w-]+>", "placeholder", block.text)
            done = subprocess.run(["sh", "-n"], input=text, capture_output=True, text=True, check=False)
            if done.returncode:
                raise SyntaxError(done.stderr)


def _json(text: str) -> None:
    """Yield a value of one line, or a part of an object."""
    try:
        json.loads(text)
    except ValueError:
        try:
            json.loads(f"{{{text}}}")
        except ValueError:
            for line in text.splitlines():
                json.loads(line)
