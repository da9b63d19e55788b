"""messages_api, as Lambda runs it."""

import importlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.unit.api_requests import ENVIRONMENT, api_event
from tests.support.unit.events import lambda_context
from tests.support.unit.functions import Handler
from tests.support.unit.shared import MAILBOX, Aws, item, refuse_calls


@pytest.fixture
def load(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Handler]]:
    """Imports the handler as if its process had just begun."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)

    def handler() -> Handler:
        sys.modules.pop("messages_api", None)
        loaded: Handler = importlib.import_module("messages_api").handler
        return loaded

    yield handler
    sys.modules.pop("messages_api", None)


def test_the_handler_stores_the_message_of_a_request_in_the_mailbox(
    load: Callable[[], Handler], aws: Aws
) -> None:
    made = api_event("POST", "/messages", json.dumps(item()), {"Content-Type": "application/json"})
    assert load()(made, lambda_context())["statusCode"] == 202
    assert aws.item(table=MAILBOX) == item()


def test_a_cold_start_of_the_api_makes_no_call_to_aws(
    load: Callable[[], Handler], monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_calls(monkeypatch)
    load()


@pytest.mark.process
def test_the_api_does_not_import_the_packages_that_only_senders_need() -> None:
    script = (
        "import sys; import mailroom.api.application; "
        "print({'minijinja', 'twilio', 'requests', 'email_validator'} & {*sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": "lambdas", "POWERTOOLS_METRICS_NAMESPACE": "Mailroom"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "set()"


def test_the_metric_of_accepted_messages_is_written_when_the_request_ends(
    load: Callable[[], Handler], capsys: pytest.CaptureFixture[str]
) -> None:
    handler: Any = load()
    made = api_event("POST", "/messages", json.dumps(item()), {"Content-Type": "application/json"})
    handler(made, lambda_context())
    written = [json.loads(line) for line in capsys.readouterr().out.splitlines() if "_aws" in line]
    assert [each["ApiAccepted"] for each in written] == [[1.0]]
