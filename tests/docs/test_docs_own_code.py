"""Examples of own code on the pages import only modules whose names are promised."""

import ast
from collections.abc import Iterator

import pytest

from tests.support.docs_pages import Page
from tests.support.promised_names import MODULES

PAGES = ("add-a-channel", "dashboards", "deploy-update-go-back", "run-a-campaign", "send-from-your-app")


def _imported(text: str) -> Iterator[str]:
    """Yield the modules that Python code imports, as `from module import name` names them."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            yield f"{node.module}"
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize("name", PAGES)
def test_the_examples_of_a_page_import_only_promised_modules_of_mailroom(name: str) -> None:
    blocks = Page(f"docs/how-to/{name}.md").blocks("python")
    modules = {module for block in blocks for module in _imported(block.text)}
    of_mailroom = {module for module in modules if module.startswith("mailroom")}
    assert of_mailroom
    assert of_mailroom <= {*MODULES}
