"""The site that `make site` builds."""

import re

from tests.support import ROOT
from tests.support.docs_pages import docs_pages
from tests.support.site import indented, without_links_to_code


def test_the_navigation_of_the_documentation_site_has_each_page_once() -> None:
    paths = re.findall(r"^ +- (?:[\w ]+: )?(\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert sorted(paths) == sorted(page.path for page in docs_pages())


def test_the_site_turns_links_to_code_into_text_and_keeps_links_to_pages_and_pictures() -> None:
    text = "[a](../../app.py), [b](../README.md#x), [c](openapi.json), [d](https://e.example), ![e](e.svg)"
    assert without_links_to_code(text, ROOT / "docs" / "reference") == text.replace("[a](../../app.py)", "a")


def test_the_site_indents_a_code_block_of_a_list_by_four_spaces() -> None:
    text = "1. a\n\n   ```sh\n     b\n   ```\n- c\n  d\n\n```sh\n  e\n```\n"
    assert indented(text) == "1. a\n\n    ```sh\n      b\n    ```\n- c\n    d\n\n```sh\n  e\n```\n"
