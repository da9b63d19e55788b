"""Words of the console: those of a support desk, not those of the code."""

import ast
import html
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from jinja2 import nodes

from mailroom.dead_letters import cause
from mailroom_ops.console import application, function, open_id, pages, team
from mailroom_ops.console.application import environment_of
from mailroom_ops.console.server import PAGES
from mailroom_ops.console.site import Site
from mailroom_ops.messages import advice, timeline, waiting
from mailroom_ops.repair import again, judge, put_back, resender, settle, stuck
from tests.ops.test_ops_console_every_page import QUERIES
from tests.support.ops.whole import begin_jobs, whole_stage

OF_CODE = re.compile(
    r"\b(ledger|re-?driv\w*|re-?queu\w*|workers?|items?|claim\w*|checkout|unsent|tombstones?|Permanent|Transient"
    r"|Undetermined|abuse)\b|arn:\S*"
)
"""Words of the code. A desk sends a message again, or puts it back; a message waits, or was recorded."""
OF_OTHERS = re.compile("<(pre|textarea|code|title)\\b.*?</\\1>", re.DOTALL)
"""Elements with content, commands and the name of a page."""
DOCUMENTATION = "/docs"
"""Path of the pages of the documentation, which explain these words."""
FOLDER = Path(pages.__file__).parent
MODULES = (
    *(advice, again, cause, judge, put_back, resender, settle, stuck, timeline, waiting),
    *(application, function, open_id, team),
)
SAYING = [Path(str(module.__file__)) for module in MODULES]


def sentences(file: Path) -> Iterator[str]:
    """Yield the texts with spaces of a module that are not docstrings."""
    tree = ast.parse(file.read_text())
    alone = {id(part.value) for part in ast.walk(tree) if isinstance(part, ast.Expr)}
    for part in ast.walk(tree):
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and id(part) not in alone:
            yield part.value if " " in part.value else ""


def texts_of_template(template: nodes.Template) -> str:
    """Return the texts of a template: between tags, in attributes for people, and of its expressions."""
    source = "".join(
        part.data if isinstance(part, nodes.TemplateData) else f" {text} "
        for part in template.find_all((nodes.TemplateData, nodes.Const))
        if " " in (text := f"{getattr(part, 'value', ' ')}")
    )
    shown = re.findall('(?:aria-label|placeholder|title|alt)="([^"]*)"', source)
    return " ".join([re.sub("<[^>]*>", " ", OF_OTHERS.sub(" ", source)), *shown])


@pytest.mark.parametrize("file", [*sorted(FOLDER.glob("*.py")), *SAYING], ids=lambda file: file.stem)
def test_the_sentences_of_a_page_do_not_use_technical_words_of_the_code(file: Path) -> None:
    assert [text for text in sentences(file) if OF_CODE.search(text)] == []


def test_the_sentences_about_stuck_messages_do_not_use_technical_words_of_the_code() -> None:
    texts = [*judge.SENTENCES.values(), *settle.FOLLOWS.values()]
    assert [text for text in texts if OF_CODE.search(text)] == []


def test_the_texts_in_the_html_templates_of_the_pages_do_not_use_technical_words_of_the_code() -> None:
    environment = environment_of(Site(None, "dev"), "", PAGES)  # type: ignore[arg-type]
    assert environment.loader is not None
    found = {}
    for name in environment.list_templates():
        source, _, _ = environment.loader.get_source(environment, name)
        if words := [match[0] for match in OF_CODE.finditer(texts_of_template(environment.parse(source)))]:
            found[name] = words
    assert "\n".join(f"{page}: {words}" for page, words in found.items()) == ""


def test_a_filled_page_of_the_console_does_not_show_a_technical_word_of_the_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with whole_stage(tmp_path, monkeypatch) as (stage, browser):
        stage.fill()
        stage.close_the_day()
        begin_jobs(browser)
        found = {}
        for path, queries in QUERIES.items():
            for query in ({}, *queries):
                text = OF_OTHERS.sub(" ", browser.get(path, **query).text)
                words = html.unescape(" ".join(re.sub("<[^>]*>", " ", text).split()))
                if path != DOCUMENTATION and (match := OF_CODE.search(words)):
                    found[f"{path} {query}"] = words[max(0, match.start() - 60) : match.end() + 20]
    assert "\n".join(f"{page}: {words}" for page, words in found.items()) == ""
