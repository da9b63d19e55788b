"""The handler twilio_callbacks, as Lambda runs it."""

import subprocess
import sys

import boto3
import pytest

from tests.support.unit.events import lambda_context
from tests.support.unit.feedback_callbacks import PUBLIC_URL, SECRET, callback_request
from tests.support.unit.functions import Load
from tests.support.unit.shared import Aws, refuse_calls


def test_the_handler_puts_a_twilio_callback_into_the_feedback_queue(
    load: Load, aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = boto3.client("secretsmanager").create_secret(Name="mailroom-test-twilio", SecretString=SECRET)
    monkeypatch.setenv("TWILIO_SECRET_ARN", created["ARN"])
    monkeypatch.setenv("PUBLIC_URL", PUBLIC_URL)
    monkeypatch.setenv("SMS_BASE_URL", "https://api.twilio.com")
    monkeypatch.setenv("FEEDBACK_QUEUE_URL", aws.urls["feedback"])
    with monkeypatch.context() as cold_start:
        refuse_calls(cold_start)
        handler = load("twilio_callbacks")
    assert handler(callback_request(), lambda_context()) == {"statusCode": 204}
    (body,) = aws.bodies("feedback")
    assert (body["source"], body["fields"]["MessageStatus"]) == ("twilio", "delivered")


@pytest.mark.process
def test_the_callback_handler_does_not_import_twilios_rest_client_or_the_libraries_that_it_needs() -> None:
    script = (
        "import sys; import mailroom.providers.twilio.callbacks; "
        "print([name for name in ('twilio.rest', 'requests', 'aiohttp', 'jwt') if name in sys.modules])"
    )
    environment = {"PYTHONPATH": "lambdas", "POWERTOOLS_METRICS_NAMESPACE": "Mailroom"}
    assert subprocess.check_output([sys.executable, "-c", script], env=environment, text=True) == "[]\n"
