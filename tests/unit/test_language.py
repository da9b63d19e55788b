"""The ratchet of `make check`: no package gets more habits of language than its ceilings allow."""

from pathlib import Path

import pytest

from tests.support import language

PACKAGE = "lambdas/mailroom/post"
FILE = f"{PACKAGE}/stamps.py"
PLAIN = '''"""Stamps."""


def price(grams: int) -> int:
    """Return the cents of a letter."""
    return 95
'''
HEADLESS = '''

def weigh(kept: int) -> int:
    """What a letter weighs; None: nobody knows."""
    made = kept
    return made
'''
PLACE = '''

def postmark() -> str:
    """Return the postmark where there is one."""
    return ""
'''
Output = pytest.CaptureFixture[str]


def row(headless: int, habits: int, odd_names: int) -> str:
    return f'"{PACKAGE}" = {{ headless = {headless}, habits = {habits}, odd_names = {odd_names} }}\n'


def check_checkout(root: Path, code: str, ceilings: str, *arguments: str) -> tuple[int, str]:
    """Return the exit code for a checkout with one file, and the ceilings after the check."""
    file = root / "language.toml"
    file.write_text(ceilings)
    (root / PACKAGE).mkdir(parents=True, exist_ok=True)
    (root / FILE).write_text(code)
    return language.main([*arguments], root, file), file.read_text()


def test_a_new_package_fails_the_language_check_at_its_first_violation_of_a_rule(
    tmp_path: Path, capsys: Output
) -> None:
    assert check_checkout(tmp_path, PLAIN, "") == (0, "")
    assert check_checkout(tmp_path, PLAIN + HEADLESS, "") == (1, "")
    assert capsys.readouterr().out.startswith(f"{PACKAGE}: headless rose from 0 to 1.")


def test_the_language_check_lists_the_worst_places_of_a_package_with_too_many_violations_first(
    tmp_path: Path, capsys: Output
) -> None:
    assert check_checkout(tmp_path, PLAIN + PLACE + HEADLESS, row(1, 1, 2))[0] == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{PACKAGE}: habits rose from 1 to 2. The worst places:",
        f"  {FILE}:15 headless, negated existence, value riddle: What a letter weighs; None: nobody knows.",
        f"  {FILE}:10 where for if: Return the postmark where there is one.",
    ]


def test_a_package_with_fewer_violations_than_allowed_fails_until_the_allowed_number_is_lowered(
    tmp_path: Path, capsys: Output
) -> None:
    assert check_checkout(tmp_path, PLAIN + HEADLESS, row(1, 3, 2)) == (1, row(1, 3, 2))
    sentence = f"{PACKAGE}: habits fell to 1. Run it with --lower to keep what you won.\n"
    assert capsys.readouterr().out == sentence
    assert check_checkout(tmp_path, PLAIN + HEADLESS, row(1, 3, 2), "--lower") == (
        0,
        language.HEADER + row(1, 1, 2),
    )
    assert check_checkout(tmp_path, PLAIN, row(1, 3, 2), "--lower") == (0, language.HEADER)


def places_in(root: Path, path: str, text: str) -> list[tuple[str, int, str]]:
    """Return package, line and text of each place with a habit in a checkout with one file."""
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return [(place.package, place.line, place.text) for place in language.read_places(root)]


def test_the_language_check_reports_a_test_name_without_a_subject_but_not_local_names_in_tests(
    tmp_path: Path,
) -> None:
    code = "def test_it_is_sent():\n    made = 1\n\n\ndef test_a_letter_is_sent():\n    pass\n"
    assert places_in(tmp_path, "tests/unit/test_post.py", code) == [("tests/unit", 1, "it_is_sent")]


def test_the_language_check_reads_a_test_comment_of_several_lines_as_one_sentence(tmp_path: Path) -> None:
    lines = (
        "# A letter costs",
        "# what nobody knows.",
        "a = '# it is'  # its weight",
        "b = 1  # noqa: E1",
        "",
    )
    code = "\n".join(lines)
    assert places_in(tmp_path, "tests/unit/test_post.py", code) == [
        ("tests/unit", 1, "A letter costs what nobody knows."),
        ("tests/unit", 3, "Its weight"),
    ]


@pytest.mark.parametrize(
    ("path", "text", "line", "sentence"),
    [
        ("SECURITY.md", "# Security\n\nPlease report:\n\n- a flaw\n- what is bad\n\nIt is.\n", 8, "It is."),
        ("Makefile", "post: ## send a letter\n\t@true\nlost: ## it is lost\n", 3, "It is lost"),
        (
            ".github/workflows/post.yml",
            "# Send letters.\n- uses: a@b # v1.2.3\n- run: x # It fails\n",
            3,
            "It fails",
        ),
        (".github/renovate.json", '{\n"description": ["Send letters.", "It fails."]}', 2, "It fails."),
    ],
)
def test_the_language_check_reads_pages_makefiles_workflows_and_descriptions_in_json(
    tmp_path: Path, path: str, text: str, line: int, sentence: str
) -> None:
    assert places_in(tmp_path, path, text)[-1] == ("other files", line, sentence)
