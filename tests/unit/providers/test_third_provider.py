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


def test_the_settings_refuse_an_unknown_provider_and_an_invalid_sender_of_a_third_provider(
    facts: dict[str, Any],
) -> None:
    assert facts["unknown"] == "mailroom.dev.sms.provider: 'acne' should be 'twilio', 'aws' or 'acme'."
    assert facts["invalid"] == (
        "mailroom.dev.sms.sender: 'shop' is not a sender of acme; use a name in capitals, such as SHOP."
    )


def test_settings_without_the_sender_of_a_fallback_provider_are_refused_with_the_missing_setting(
    facts: dict[str, Any],
) -> None:
    assert facts["missing"] == (
        "mailroom.dev.sms.fallback_sender: is missing; use a name in capitals, such as SHOP."
    )


def test_the_base_url_in_the_settings_applies_only_to_the_first_of_two_providers(
    facts: dict[str, Any],
) -> None:
    assert facts["urls"] == ["https://api.dublin.ie1.twilio.com", "https://sms.acme.example"]


def test_requests_of_a_third_provider_have_a_function_even_if_it_has_no_secret(facts: dict[str, Any]) -> None:
    assert "mailroom-dev-acme-requests" in facts["api"]["functions"]


def test_the_routes_of_a_third_provider_have_the_rate_limit_of_other_routes_of_the_same_purpose(
    facts: dict[str, Any],
) -> None:
    rates = facts["api"]["rates"]
    assert rates["POST /acme/inbound"] == rates["POST /twilio/inbound"] == rates["GET /unsubscribe/{token}"]
    assert rates["POST /callbacks/acme"] == rates["POST /callbacks/twilio/{reference}"] == 150
    assert facts["api"]["messages"] + sum(rates.values()) <= 1_000


def test_a_stack_gives_its_sender_the_variables_secret_and_code_of_a_third_provider(
    facts: dict[str, Any],
) -> None:
    assert facts["variables"] == {
        "SMS_PROVIDER": "acme",
        "SMS_SENDER": "SHOP",
        "ACME_URL": "https://sms.acme.example",
    }
    assert facts["reads"]
    assert facts["secret"] == 'Credentials of Acme: {"token"}'
    assert {*facts["modules"]} > {"tests.support.acme.provider", "tests.support.acme.provider.sender"}


def test_an_sms_is_sent_by_a_third_provider_and_the_event_of_that_provider_is_read(
    facts: dict[str, Any],
) -> None:
    assert facts["sent"] == "Sent(provider_id='A1', facts={'segments': 1, 'encoding': 'GSM-7'})"
    assert facts["events"] == ["acme"]


def test_commands_and_the_local_stage_work_with_a_third_provider(facts: dict[str, Any]) -> None:
    assert (facts["price"], facts["title"], facts["checks"]) == (0.01, "Acme", ["Acme knows SHOP."])
    assert facts["local"] == ["http://127.0.0.1:9/acme", "local"]
