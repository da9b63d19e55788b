"""A change of a name that a deployer's own code may import is written into the changelog."""

from difflib import unified_diff

import pytest

from tests.support.promised_names import FILE, lines_of_names

NEXT = """
A removed or changed line breaks the code of deployers: write it into CHANGELOG.md, section Unreleased.
Then run: .venv/bin/python -m tests.support.promised_names"""


def test_names_that_a_teams_code_may_import_have_the_promised_parameters_and_members() -> None:
    changes = unified_diff(
        FILE.read_text().splitlines(), lines_of_names(), "promised", "code", n=0, lineterm=""
    )
    if difference := "\n".join(changes):
        pytest.fail(f"{difference}{NEXT}", pytrace=False)
