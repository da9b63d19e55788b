"""A third provider of text messages is a package, a row, and at most one module in each higher layer."""

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.support import ROOT

FOLDER = ROOT / "tests" / "support" / "acme"
pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def facts() -> dict[str, Any]:
    """Return what each layer makes of the provider Acme."""
    path = ":".join(str(ROOT / folder) for folder in (".", "lambdas", "stacks"))
    command = [sys.executable, "-m", "tests.support.acme.tour"]
    environment = {"PYTHONPATH": path, "PATH": "/usr/bin:/bin", "AWS_DEFAULT_REGION": "us-east-1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def test_a_third_provider_has_one_module_for_each_higher_layer_that_needs_one() -> None:
    assert {file.name for file in FOLDER.glob("*.py")} - {"__init__.py", "tour.py"} == {
        *("stack.py", "check.py", "simulator.py")
    }


def test_settings_know_a_third_provider_and_its_senders(facts: dict[str, Any]) -> None:
    assert facts["unknown"] == "mailroom.dev.sms.provider: 'acne' should be 'twilio', 'aws' or 'acme'."
    assert facts["invalid"] == (
        "mailroom.dev.sms.sender: 'shop' is not a sender of acme; use a name in capitals, such as SHOP."
    )


def test_a_stack_gives_the_sender_what_the_module_of_a_third_provider_names(facts: dict[str, Any]) -> None:
    assert facts["variables"] == {
        "SMS_PROVIDER": "acme",
        "SMS_SENDER": "SHOP",
        "ACME_URL": "https://sms.acme.example",
    }
    assert facts["reads"]
    assert facts["secret"] == 'Credentials of Acme: {"token"}'
    assert {*facts["modules"]} > {"tests.support.acme.provider", "tests.support.acme.provider.sender"}


def test_a_text_is_sent_by_a_third_provider_and_its_event_is_read(facts: dict[str, Any]) -> None:
    assert facts["sent"] == "Sent(provider_id='A1', facts={'segments': 1, 'encoding': 'GSM-7'})"
    assert facts["events"] == ["acme"]


def test_commands_and_the_local_stage_know_a_third_provider(facts: dict[str, Any]) -> None:
    assert (facts["price"], facts["title"], facts["checks"]) == (0.01, "Acme", ["Acme knows SHOP."])
    assert facts["local"] == ["http://127.0.0.1:9/acme", "local"]
