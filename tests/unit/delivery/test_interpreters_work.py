"""The interpreter's work for a mail and for a cold start, counted: it does not grow unseen."""

import sys

import pytest

from lab.bench import counted

PYTHON = (3, 11)
"""Python of the ceilings. Another one makes and counts other calls, and imports other modules."""
CALLS = 248
"""Ceiling of function calls for a mail, without its rendering and without botocore."""
MODULES = {
    "send_mail": 490,
    "send_mail_resend": 494,
    "send_sms": 472,
    "send_push": 470,
    "send_fax": 475,
    "send_webhook": 480,
}
"""Ceilings of modules that a sender imports at a cold start."""
FEW = 5
pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.version_info[:2] != PYTHON, reason=f"the ceilings are of Python {PYTHON}"),
]


def at_its_ceiling(count: float, ceiling: int) -> None:
    """Fail if a count is above its ceiling, or so far below that the ceiling would no longer hold it."""
    assert count <= ceiling, "if it has to grow, raise the ceiling here, and say why in CHANGELOG.md"
    assert count >= ceiling - FEW, "it fell: lower the ceiling here"


def test_a_mail_takes_at_most_as_many_python_function_calls_as_its_ceiling() -> None:
    at_its_ceiling(counted.interpreter("method")["calls"], CALLS)


@pytest.mark.parametrize("level", ["mail", "local"])
def test_a_warm_sender_does_not_open_a_file_for_a_mail_in_a_bundle_or_in_the_local_stage(level: str) -> None:
    assert counted.interpreter(level)["files"] == 0


@pytest.mark.parametrize("handler", MODULES)
def test_a_cold_start_of_a_sender_imports_no_more_modules_than_its_ceiling(handler: str) -> None:
    at_its_ceiling(counted.modules(handler), MODULES[handler])
