"""Each function runs where, with what and as what it should."""

import json
import re

import msgspec
import pytest

from mailroom import environment
from mailroom.environment import MessagesApiSettings
from tests.support.stacks.templates import Templates, text_of

FUNCTIONS = [
    ("channels", "send-mail", "send_mail", environment.SesSender),
    ("channels", "send-mail-bulk", "send_mail", environment.SesSender),
    ("channels", "send-sms", "send_sms", environment.SmsSender),
    ("feedback", "feedback", "feedback", environment.FeedbackSettings),
    ("api", "twilio-callbacks", "twilio_callbacks", environment.TwilioCallbacksSettings),
    ("api", "messages-api", "messages_api", MessagesApiSettings),
    ("api", "unsubscribe", "unsubscribe", environment.UnsubscribeSettings),
    ("campaigns", "collect", "collect", environment.CollectSettings),
    ("campaigns", "compose", "compose", environment.ComposeSettings),
    ("dead-letters", "dead-letters", "dead_letters", environment.DeadLettersSettings),
    ("fax", "send-fax", "send_fax", environment.FaxSender),
    ("fax", "retry-fax", "retry_fax", environment.RetryFaxSettings),
    ("webhook", "send-webhook", "send_webhook", environment.WebhookSender),
    ("routing", "dispatch", "dispatch", environment.DispatchSettings),
    ("routing", "outcomes", "outcomes", environment.OutcomesSettings),
    ("routing", "index-messages", "index_messages", environment.IndexSettings),
    ("routing", "release", "release", environment.ReleaseSettings),
]
TELEMETRY = {
    "MAILROOM_STAGE",
    "POWERTOOLS_SERVICE_NAME",
    "POWERTOOLS_METRICS_NAMESPACE",
    "POWERTOOLS_LOG_LEVEL",
}
every_function = pytest.mark.parametrize(("stack", "name", "handler", "settings"), FUNCTIONS)


@every_function
def test_a_function_runs_its_handler_on_arm_and_keeps_its_log_for_a_while(
    whole: Templates, stack: str, name: str, handler: str, settings: type[msgspec.Struct]
) -> None:
    function = whole[stack].one("Lambda::Function", FunctionName=f"mailroom-dev-{name}")
    assert function["Handler"] == f"{handler}.handler"
    assert (function["Runtime"], function["Architectures"]) == ("python3.14", ["arm64"])
    log = whole[stack].one("Logs::LogGroup", LogGroupName=f"/aws/lambda/mailroom-dev-{name}")
    assert log["RetentionInDays"] == 30


@every_function
def test_the_environment_of_a_function_contains_exactly_its_settings(
    whole: Templates,
    monkeypatch: pytest.MonkeyPatch,
    stack: str,
    name: str,
    handler: str,
    settings: type[msgspec.Struct],
) -> None:
    given = whole[stack].environment(f"mailroom-dev-{name}")
    for variable, value in given.items():
        monkeypatch.setenv(variable, value)
    assert environment.read(settings)
    required = {each.encode_name for each in msgspec.structs.fields(settings) if each.required}
    known = {each.encode_name for each in msgspec.structs.fields(settings)}
    assert required | TELEMETRY <= given.keys() <= known | TELEMETRY
    assert given["POWERTOOLS_SERVICE_NAME"] == name
    assert (given["MAILROOM_STAGE"], given["POWERTOOLS_METRICS_NAMESPACE"]) == ("dev", "Mailroom")
    assert given.get("LEDGER_TTL_SECONDS", str(90 * 86_400)) == str(90 * 86_400)


@pytest.mark.parametrize("name", ["dispatch", "release"])
def test_dispatch_and_release_get_the_queue_of_each_lane(dev: Templates, name: str) -> None:
    routes = json.loads(dev["routing"].environment(f"mailroom-dev-{name}")["ROUTES"])
    assert {event_type: set(lanes) for event_type, lanes in routes.items()} == {
        "mail": {"normal", "bulk"},
        "sms": {"normal"},
        "fax": {"normal"},
        "webhook": {"normal"},
    }
    assert re.search("MailQueue", routes["mail"]["normal"])
    assert re.search("MailBulkQueue", routes["mail"]["bulk"])
    assert re.search("FaxQueue", routes["fax"]["normal"])
    assert re.search("WebhookQueue", routes["webhook"]["normal"])


def test_the_mailbox_stream_is_read_with_limits_and_failed_batches_go_to_the_unprocessed_bucket(
    dev: Templates,
) -> None:
    mapping = dict(dev["routing"].mapping("mailroom-dev-dispatch"))
    bucket = mapping.pop("DestinationConfig")["OnFailure"]["Destination"]["Fn::GetAtt"][0]
    name = dev["routing"].body["Resources"][bucket]["Properties"]["BucketName"]
    assert text_of(name) == "mailroom-dev-unprocessed-111122223333-eu-central-1"
    assert text_of(mapping.pop("EventSourceArn")).startswith(
        "<mailroom-dev-mailbox:ExportsOutputFnGetAttMailbox"
    )
    del mapping["FunctionName"], mapping["Tags"]
    assert mapping == {
        "BatchSize": 100,
        "BisectBatchOnFunctionError": True,
        "Enabled": True,
        "FilterCriteria": {"Filters": [{"Pattern": '{"eventName":["INSERT"]}'}]},
        "FunctionResponseTypes": ["ReportBatchItemFailures"],
        "MaximumBatchingWindowInSeconds": 0,
        "MaximumRecordAgeInSeconds": 21_600,
        "MaximumRetryAttempts": 10,
        "MetricsConfig": {"Metrics": ["EventCount"]},
        "ParallelizationFactor": 2,
        "StartingPosition": "TRIM_HORIZON",
    }


def test_functions_get_only_the_arns_of_secrets(whole: Templates) -> None:
    """If a function needs a secret, its variable's name shows that its value is the secret's ARN."""
    names = {
        name
        for template in whole.stacks.values()
        for each in template.all("Lambda::Function")
        for name in each["Environment"]["Variables"]
        if re.search("SECRET|TOKEN|PASSWORD|CREDENTIAL", name)
    }
    assert names
    assert all(name.endswith(("_SECRET_ARN", "_SECRET_ARNS")) for name in names)
