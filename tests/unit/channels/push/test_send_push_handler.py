"""The handler send_push, with its environment, its events and its responses."""

import json
import sys
from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from mailroom.aws import clients
from tests.support.unit.events import failures, lambda_context, sqs_event
from tests.support.unit.functions import Load
from tests.support.unit.push import TOKEN, push_item
from tests.support.unit.shared import SUPPRESSIONS, Aws


@pytest.fixture
def sns(aws: Aws) -> Iterator[Any]:
    """Create an SNS in process with one application."""
    client = boto3.client("sns")
    client.create_platform_application(
        Name="shop-android", Platform="GCM", Attributes={"PlatformCredential": "x"}
    )
    clients.sns.cache_clear()
    yield client
    clients.sns.cache_clear()
    for endpoint in endpoints(client):
        client.delete_endpoint(EndpointArn=endpoint["EndpointArn"])
    client.delete_platform_application(PlatformApplicationArn=application_arn(client))


@pytest.fixture
def load_push(load: Load, sns: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Load a handler with the environment of a stage with push notifications."""
    monkeypatch.setenv("CHANNEL", "push")
    monkeypatch.setenv("PLATFORM_APPLICATIONS", json.dumps({"android": application_arn(sns)}))
    monkeypatch.setenv("TOPICS", "[]")
    yield load
    sys.modules.pop("send_push", None)


def application_arn(sns: Any) -> str:
    (application,) = sns.list_platform_applications()["PlatformApplications"]
    return str(application["PlatformApplicationArn"])


def endpoints(sns: Any) -> list[Any]:
    page = sns.list_endpoints_by_platform_application(PlatformApplicationArn=application_arn(sns))
    return list(page["Endpoints"])


def test_a_push_to_a_device_token_is_sent_once_and_the_ledger_keeps_its_endpoint(
    load_push: Load, aws: Aws, sns: Any
) -> None:
    handler = load_push("send_push")
    for _ in range(2):
        assert handler(sqs_event(push_item(to=TOKEN)), lambda_context()) == {"batchItemFailures": []}
    (endpoint,) = endpoints(sns)
    entry = aws.item("p-1", "push")
    assert (entry["status"], entry["provider"]) == ("sent", "sns")
    assert entry["endpoint_arn"] == endpoint["EndpointArn"]


def test_a_disabled_endpoint_is_put_on_the_suppression_list_and_its_next_push_is_suppressed(
    load_push: Load, aws: Aws, sns: Any
) -> None:
    handler = load_push("send_push")
    handler(sqs_event(push_item(to=TOKEN)), lambda_context())
    (endpoint,) = endpoints(sns)
    sns.set_endpoint_attributes(EndpointArn=endpoint["EndpointArn"], Attributes={"Enabled": "false"})
    to_endpoint = push_item(id="p-2", to=endpoint["EndpointArn"])
    assert failures(handler(sqs_event(to_endpoint), lambda_context())) == []
    assert aws.item("p-2", "push")["status"] == "failed"
    assert failures(handler(sqs_event({**to_endpoint, "id": "p-3"}), lambda_context())) == []
    assert aws.item("p-3", "push")["status"] == "suppressed"
    (mark,) = aws.dynamodb.scan(TableName=SUPPRESSIONS)["Items"]
    assert mark["recipient"] == {"S": endpoint["EndpointArn"]}
    assert mark["reason"] == {"S": "gone"}


def test_send_push_logs_neither_device_tokens_nor_the_texts_of_pushes(
    load_push: Load, capsys: pytest.CaptureFixture[str]
) -> None:
    load_push("send_push")(sqs_event(push_item(to=TOKEN), push_item(to="x y")), lambda_context())
    written = "".join(capsys.readouterr())
    assert TOKEN not in written
    assert "Your table" not in written
