"""Twilio's callbacks on the emulator: through its HTTP API to a function, as they were sent and signed."""

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from twilio.request_validator import RequestValidator
from twilio.rest import Client

from mailroom_local.aws import LocalSession, patient
from mailroom_local.processes import wait_until
from mailroom_local.providers.server import ProviderServer
from mailroom_local.providers.twilio import ACCOUNT_SID, AUTH_TOKEN
from tests.support.local.emulator import create_function, emulated, functions
from tests.support.local.served import served
from tests.support.local.twilio import SENDER, Redirected, form, number

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

ECHO = """
import json, os, boto3

def handler(event, context):
    sqs = boto3.client("sqs", endpoint_url=os.environ["AWS_ENDPOINT_URL"])
    body = {"event": event, "batch": len(event.get("Records", []))}
    sqs.send_message(QueueUrl=os.environ["OUT"], MessageBody=json.dumps(body))
    return {"statusCode": 204}
"""
FUNCTION = "arn:aws:lambda:us-east-1:000000000000:function:echo"
API = {
    "Api": {"Type": "AWS::ApiGatewayV2::Api", "Properties": {"Name": "echo", "ProtocolType": "HTTP"}},
    "Integration": {
        "Type": "AWS::ApiGatewayV2::Integration",
        "Properties": {
            "ApiId": {"Ref": "Api"},
            "IntegrationType": "AWS_PROXY",
            "IntegrationUri": FUNCTION,
            "PayloadFormatVersion": "2.0",
        },
    },
    "Route": {
        "Type": "AWS::ApiGatewayV2::Route",
        "Properties": {
            "ApiId": {"Ref": "Api"},
            "RouteKey": "POST /callbacks/twilio/{reference}",
            "Target": {"Fn::Join": ["", ["integrations/", {"Ref": "Integration"}]]},
        },
    },
    "Stage": {
        "Type": "AWS::ApiGatewayV2::Stage",
        "Properties": {"ApiId": {"Ref": "Api"}, "StageName": "$default", "AutoDeploy": True},
    },
    "Permission": {
        "Type": "AWS::Lambda::Permission",
        "Properties": {
            "Action": "lambda:InvokeFunction",
            "FunctionName": "echo",
            "Principal": "apigateway.amazonaws.com",
        },
    },
}


@dataclass
class Stage:
    """An API in front of a function that writes what it gets into the queue `out`."""

    providers: str
    public: str
    sqs: "SQSClient"
    out: str
    aws: str

    def got(self, count: int, seconds: float = 10) -> list[dict[str, Any]]:
        """What the function got, once it was so often."""
        found: list[dict[str, Any]] = []

        def enough() -> bool:
            answer = self.sqs.receive_message(QueueUrl=self.out, MaxNumberOfMessages=10)
            for each in answer.get("Messages", []):
                found.append(json.loads(each["Body"]))
                self.sqs.delete_message(QueueUrl=self.out, ReceiptHandle=each["ReceiptHandle"])
            return len(found) >= count

        wait_until(enough, seconds)
        return found


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder: Path = tmp_path_factory.mktemp("api")
    with emulated(folder) as aws:
        sqs = LocalSession().client("sqs", endpoint_url=aws, config=patient())
        out = sqs.create_queue(QueueName="out")["QueueUrl"]
        create_function(aws, "echo", ECHO, {"OUT": out, "AWS_ENDPOINT_URL": aws})
        formation = LocalSession().client("cloudformation", endpoint_url=aws, config=patient())
        template = {"Resources": API, "Outputs": {"Api": {"Value": {"Ref": "Api"}}}}
        formation.create_stack(StackName="api", TemplateBody=json.dumps(template))
        assert wait_until(lambda: "Outputs" in formation.describe_stacks(StackName="api")["Stacks"][0], 10)
        api = formation.describe_stacks(StackName="api")["Stacks"][0]["Outputs"][0]["OutputValue"]
        public = f"https://{api}.execute-api.us-east-1.amazonaws.com"
        with served(ProviderServer(0, aws)) as url:
            yield Stage(url, public, sqs, out, aws)


def test_a_callback_reaches_the_function_of_its_route_as_it_was_signed(stage: Stage) -> None:
    client = Client(ACCOUNT_SID, AUTH_TOKEN, http_client=Redirected(f"{stage.providers}/twilio"))
    path = "/callbacks/twilio/w7zigqzwn5ig.2"
    sent = client.messages.create(
        to=number("34"), from_=SENDER, body="Zoë", status_callback=f"{stage.public}{path}"
    )
    events = [each["event"] for each in stage.got(2)]
    told = [form(base64.b64decode(each["body"])) for each in events]
    assert {each["MessageStatus"] for each in told} == {"queued", "sent"}
    assert {each["MessageSid"] for each in told} == {sent.sid}
    for event, fields in zip(events, told, strict=True):
        assert (event["version"], event["rawPath"], event["rawQueryString"]) == ("2.0", path, "")
        assert event["pathParameters"] == {"reference": "w7zigqzwn5ig.2"}
        assert (event["isBase64Encoded"], event["requestContext"]["http"]["method"]) == (True, "POST")
        signature = event["headers"]["x-twilio-signature"]
        assert RequestValidator(AUTH_TOKEN).validate(f"{stage.public}{path}", fields, signature)


def test_the_emulator_hands_over_ten_records_at_most_however_large_the_batch_may_be(stage: Stage) -> None:
    queue = stage.sqs.create_queue(QueueName="many")["QueueUrl"]
    for _ in range(5):
        entries: list[Any] = [{"Id": f"{n}", "MessageBody": "{}"} for n in range(10)]
        stage.sqs.send_message_batch(QueueUrl=queue, Entries=entries)
    functions(stage.aws).create_event_source_mapping(
        FunctionName="echo",
        EventSourceArn="arn:aws:sqs:us-east-1:000000000000:many",
        BatchSize=100,
        MaximumBatchingWindowInSeconds=2,
    )
    assert max(each["batch"] for each in stage.got(5)) == 10
