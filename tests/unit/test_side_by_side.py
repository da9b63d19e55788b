"""Test runs side by side: `make test` must show what fails, and fail."""

import pytest

from tests.support import side_by_side

pytestmark = pytest.mark.process

SHELL = ("sh", "-c")


def test_the_run_fails_if_any_of_the_commands_fails() -> None:
    assert side_by_side.main(["true", "'exit 3'"], SHELL) == 1
    assert side_by_side.main(["'exit 3'", "true"], SHELL) == 1
    assert side_by_side.main(["'kill -9 $$'", "true"], SHELL) == 1
    assert side_by_side.main(["true", "true"], SHELL) == 0


def test_every_line_of_output_follows_the_first_argument_of_its_command(
    capfd: pytest.CaptureFixture[str],
) -> None:
    side_by_side.main(["'echo one; echo two'", "'echo three >&2'"], SHELL)
    printed = capfd.readouterr()
    assert printed.out.splitlines()[:2] == ["echo one; echo two: one", "echo one; echo two: two"]
    assert printed.out.splitlines()[-1].startswith("CPU: ")
    assert printed.err == "three\n"
