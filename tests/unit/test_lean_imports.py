"""What a sender imports of ours: to understand it, one opens no more files than that."""

import os
import subprocess
import sys

import pytest

from tests.support.unit.functions import environment
from tests.support.unit.shared import Aws

MOST = 22
SCRIPT = """
import sys, send_mail
ours = [(name, module.__file__) for name, module in sys.modules.items() if name.startswith("mailroom")]
print(*sorted(name for name, file in ours if not file.endswith("__init__.py")))
"""


@pytest.mark.process
def test_send_mail_imports_few_modules_of_ours(aws: Aws) -> None:
    told = subprocess.check_output(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, **environment(aws), "PYTHONPATH": "lambdas"},
        text=True,
    )
    modules = told.split()
    print(len(modules), *modules, sep="\n")  # noqa: T201 - `pytest -s` shows which they are
    assert "mailroom.delivery.worker" in modules
    assert len(modules) <= MOST
    # Who takes in events or erases people is not who sends.
    assert not {"mailroom.ledger.observer", "mailroom.ledger.erasure"} & {*modules}
