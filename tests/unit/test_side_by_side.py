"""Test runs side by side: `make test` must show what fails, and fail."""

import shlex

import pytest

from tests.support import side_by_side

pytestmark = pytest.mark.process

SHELL = ("sh", "-c")
QUOTE = "'"


@pytest.mark.parametrize(("failing", "code"), [("'exit 3'", 3), ("'kill -9 $$'", -9)])
def test_a_run_of_commands_side_by_side_fails_and_names_a_command_that_failed(
    capsys: pytest.CaptureFixture[str], failing: str, code: int
) -> None:
    for arguments in ([failing, "true"], ["true", failing]):
        assert side_by_side.main(arguments, SHELL) == 1
        (line, _) = capsys.readouterr().out.splitlines()
        assert line == f"{failing.strip(QUOTE)}: failed with exit code {code}"


def test_a_run_of_commands_side_by_side_succeeds_if_all_commands_succeed() -> None:
    assert side_by_side.main(["true", "true"], SHELL) == 0


def test_a_byte_of_a_commands_output_that_is_not_utf_8_is_replaced(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert side_by_side.main([shlex.quote("printf '\\377\\n'")], SHELL) == 0
    assert "\ufffd" in capsys.readouterr().out


def test_every_line_of_a_commands_standard_output_begins_with_its_first_argument(
    capfd: pytest.CaptureFixture[str],
) -> None:
    side_by_side.main(["'echo one; echo two'", "'echo three >&2'"], SHELL)
    printed = capfd.readouterr()
    assert printed.out.splitlines()[:2] == ["echo one; echo two: one", "echo one; echo two: two"]
    assert printed.out.splitlines()[-1].startswith("CPU: ")
    assert printed.err == "three\n"
