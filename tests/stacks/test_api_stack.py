"""What may be called from outside, how often, and what is kept of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.stacks.refusals import REMOVED
from tests.stacks.templates import Template, Templates, text
from tests.stacks.variants import AWS, variant

LOG = {"logs:CreateLogStream", "logs:PutLogEvents"}
OWN_URL = "https://<ApiF70053CD>.execute-api.eu-central-1.amazonaws.com"


def watched(template: Template, alarm: dict[str, Any]) -> str:
    """The function whose errors an alarm rings for, at the first of them."""
    assert (alarm["Namespace"], alarm["MetricName"], alarm["Statistic"]) == ("AWS/Lambda", "Errors", "Sum")
    assert (alarm["Threshold"], alarm["Period"], alarm["EvaluationPeriods"]) == (1, 300, 1)
    assert alarm["ComparisonOperator"] == "GreaterThanOrEqualToThreshold"
    assert alarm["TreatMissingData"] == "notBreaching"
    (dimension,) = alarm["Dimensions"]
    assert dimension["Name"] == "FunctionName"
    name: str = template.body["Resources"][dimension["Value"]["Ref"]]["Properties"]["FunctionName"]
    return name


def test_the_one_route_is_twilios_callback_for_a_message(dev: Templates) -> None:
    (route,) = dev["api"].all("ApiGatewayV2::Route")
    assert route["RouteKey"] == "POST /callbacks/twilio/{reference}"
    (integration,) = dev["api"].all("ApiGatewayV2::Integration")
    assert (integration["IntegrationType"], integration["PayloadFormatVersion"]) == ("AWS_PROXY", "2.0")
    function = dev["api"].body["Resources"][integration["IntegrationUri"]["Fn::GetAtt"][0]]["Properties"]
    assert function["FunctionName"] == "mailroom-dev-twilio-callbacks"


def test_api_gateway_may_invoke_the_function_for_that_route_alone(dev: Templates) -> None:
    (permission,) = dev["api"].all("Lambda::Permission")
    assert permission["Principal"] == "apigateway.amazonaws.com"
    assert text(permission["SourceArn"]).endswith(":<ApiF70053CD>/*/*/callbacks/twilio/{reference}")


def test_an_http_api_has_one_stage_that_is_throttled_and_deploys_itself(dev: Templates) -> None:
    assert dev["api"].one("ApiGatewayV2::Api", Name="mailroom-dev")["ProtocolType"] == "HTTP"
    (stage,) = dev["api"].all("ApiGatewayV2::Stage")
    assert (stage["StageName"], stage["AutoDeploy"]) == ("$default", True)
    assert stage["DefaultRouteSettings"] == {"ThrottlingBurstLimit": 500, "ThrottlingRateLimit": 500}


def test_the_access_log_holds_no_path_no_query_and_no_body_and_goes_after_a_while(dev: Templates) -> None:
    (stage,) = dev["api"].all("ApiGatewayV2::Stage")
    settings = stage["AccessLogSettings"]
    written = json.loads(settings["Format"])
    assert {"requestId", "routeKey", "status", "sourceIp"} <= written.keys()
    for private in ("path", "query", "body", "userAgent", "authorizer"):
        assert private.lower() not in settings["Format"].lower()
    log = dev["api"].body["Resources"][settings["DestinationArn"]["Fn::GetAtt"][0]]["Properties"]
    assert log == {
        **log,
        "LogGroupName": "/aws/vendedlogs/mailroom-dev-api",
        "RetentionInDays": 30,
    }


def test_the_function_reads_the_secret_and_sends_to_the_feedback_queue_and_does_nothing_else(
    dev: Templates,
) -> None:
    may = dev["api"].policy("mailroom-dev-twilio-callbacks")
    assert may.keys() == LOG | {"secretsmanager:GetSecretValue", "sqs:SendMessage"}
    (secret,), (queue,) = may["secretsmanager:GetSecretValue"], may["sqs:SendMessage"]
    assert "ExportsOutputRefTwilioSecret" in secret
    assert "ExportsOutputFnGetAttFeedbackQueue" in queue


def test_the_url_that_twilio_signs_is_the_one_that_it_is_given(dev: Templates) -> None:
    given = dev["api"].environment("mailroom-dev-twilio-callbacks")
    assert given["PUBLIC_URL"] == OWN_URL == dev["api"].output("ApiUrl")
    assert "ExportsOutputRefFeedbackQueue" in given["FEEDBACK_QUEUE_URL"]
    assert "ExportsOutputRefTwilioSecret" in given["TWILIO_SECRET_ARN"]
    told = dev["channels"].environment("mailroom-dev-send-sms")["CALLBACK_URL"]
    assert told.startswith("https://<mailroom-dev-api:ExportsOutputRefApi")
    assert told.endswith(".execute-api.eu-central-1.amazonaws.com/callbacks/twilio")


def test_a_domain_of_its_own_is_a_setting(tmp_path: Path) -> None:
    stacks = variant(tmp_path, {"api.public_url": "https://mail.example.com"})
    assert stacks["api"].output("ApiUrl") == "https://mail.example.com"
    given = stacks["api"].environment("mailroom-dev-twilio-callbacks")
    assert given["PUBLIC_URL"] == "https://mail.example.com"
    told = stacks["channels"].environment("mailroom-dev-send-sms")
    assert told["CALLBACK_URL"] == "https://mail.example.com/callbacks/twilio"


def test_a_function_that_is_called_back_answers_before_twilio_gives_up(dev: Templates) -> None:
    function = dev["api"].one("Lambda::Function", FunctionName="mailroom-dev-twilio-callbacks")
    assert function["Timeout"] == 10 < 15


def test_an_alarm_rings_when_the_api_answers_with_server_errors(dev: Templates) -> None:
    alarm = dev["api"].one("CloudWatch::Alarm", AlarmName="mailroom-dev-api-5xx")
    assert (alarm["Namespace"], alarm["MetricName"], alarm["Statistic"]) == ("AWS/ApiGateway", "5xx", "Sum")
    (dimension,) = alarm["Dimensions"]
    assert dimension["Name"] == "ApiId"
    api = dev["api"].body["Resources"][dimension["Value"]["Ref"]]["Properties"]
    assert api["Name"] == "mailroom-dev"
    assert (alarm["Threshold"], alarm["Period"], alarm["EvaluationPeriods"]) == (1, 300, 1)
    assert alarm["ComparisonOperator"] == "GreaterThanOrEqualToThreshold"
    assert alarm["TreatMissingData"] == "notBreaching"
    assert "log of twilio-callbacks" in alarm["AlarmDescription"]


def test_an_alarm_rings_when_the_function_fails(dev: Templates) -> None:
    alarm = dev["api"].one("CloudWatch::Alarm", AlarmName="mailroom-dev-twilio-callbacks-errors")
    assert watched(dev["api"], alarm) == "mailroom-dev-twilio-callbacks"
    assert "log of twilio-callbacks" in alarm["AlarmDescription"]


@pytest.mark.parametrize("changes", [{"sms": AWS}, {"sms": None, "channels.sms": REMOVED}])
def test_where_nobody_calls_back_there_is_no_api(tmp_path: Path, changes: dict[str, object]) -> None:
    stacks: dict[str, Template] = variant(tmp_path, changes)
    assert "api" not in stacks
