"""twilio_callbacks, as Lambda runs it."""

import importlib
import sys
from collections.abc import Iterator
from typing import Any

import boto3
import msgspec
import pytest

from tests.support.unit.events import lambda_context
from tests.support.unit.feedback_callbacks import PUBLIC_URL, SECRET, post
from tests.support.unit.functions import Handler
from tests.support.unit.shared import Aws, refuse_calls

VARIABLES = ("TWILIO_SECRET_ARN", "PUBLIC_URL", "FEEDBACK_QUEUE_URL", "SMS_BASE_URL")
_NAMES = iter(range(1000))


@pytest.fixture
def callbacks(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Imports the handler as if its process had just begun."""
    secrets = boto3.client("secretsmanager")
    arn = secrets.create_secret(Name=f"mailroom-test-twilio-{next(_NAMES)}", SecretString=SECRET)["ARN"]
    for name, value in zip(
        VARIABLES, (arn, PUBLIC_URL, aws.urls["mail"], "https://twilio.example"), strict=True
    ):
        monkeypatch.setenv(name, value)

    def load() -> Handler:
        sys.modules.pop("twilio_callbacks", None)
        loaded: Handler = importlib.import_module("twilio_callbacks").handler
        return loaded

    yield load
    sys.modules.pop("twilio_callbacks", None)


def test_a_callback_goes_from_the_request_into_the_queue(callbacks: Any, aws: Aws) -> None:
    assert callbacks()(post(), lambda_context()) == {"statusCode": 204}
    (body,) = aws.bodies("mail")
    assert (body["source"], body["fields"]["MessageStatus"]) == ("twilio", "delivered")


def test_a_bad_signature_leaves_the_queue_empty(callbacks: Any, aws: Aws) -> None:
    assert callbacks()(post(signature="no"), lambda_context()) == {"statusCode": 403}
    assert aws.bodies("mail") == []


@pytest.mark.parametrize("variable", [each for each in VARIABLES if each != "SMS_BASE_URL"])
def test_a_handler_that_lacks_a_variable_does_not_start_and_names_it(
    callbacks: Any, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.delenv(variable)
    with pytest.raises(msgspec.ValidationError, match=variable):
        callbacks()


def test_a_variable_that_an_earlier_release_did_not_set_has_a_default(
    callbacks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lambda takes code and variables in two calls, and Twilio repeats a callback for seconds only."""
    monkeypatch.delenv("SMS_BASE_URL")
    assert callbacks()(post(signature="no"), lambda_context()) == {"statusCode": 403}


def test_a_cold_start_asks_nobody_for_anything(callbacks: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_calls(monkeypatch)
    callbacks()


@pytest.mark.process
def test_of_twilios_package_the_validator_alone_is_imported() -> None:
    import subprocess

    script = (
        "import sys; import mailroom.feedback.twilio_callbacks; "
        "print([each for each in ('twilio.rest', 'requests', 'aiohttp', 'jwt') if each in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": "lambdas", "POWERTOOLS_METRICS_NAMESPACE": "Mailroom"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
