"""What the stacks and the pump rely on of the emulator's queues and secrets."""

import json
import string
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mailroom_local.aws import LocalSession, patient
from mailroom_local.processes import wait_until
from tests.support.local.emulator import emulated

if TYPE_CHECKING:
    from types_boto3_secretsmanager import SecretsManagerClient
    from types_boto3_sqs import SQSClient

FIFO = {
    "FifoQueue": "true",
    "DeduplicationScope": "messageGroup",
    "FifoThroughputLimit": "perMessageGroupId",
    "VisibilityTimeout": "1",
}
SECRETS = {
    "Resources": {
        "Signing": {
            "Type": "AWS::SecretsManager::Secret",
            "Properties": {
                "Name": "signing",
                "GenerateSecretString": {
                    "PasswordLength": 44,
                    "ExcludePunctuation": True,
                    "IncludeSpace": False,
                },
            },
        },
        "Fax": {
            "Type": "AWS::SecretsManager::Secret",
            "Properties": {
                "Name": "fax",
                "GenerateSecretString": {
                    "SecretStringTemplate": '{"project": "put yours"}',
                    "GenerateStringKey": "token",
                    "ExcludeUppercase": True,
                    "ExcludeNumbers": True,
                    "ExcludePunctuation": True,
                    "ExcludeCharacters": "abc",
                },
            },
        },
    }
}


@pytest.fixture
def sqs(url: str) -> "SQSClient":
    return LocalSession().client("sqs", endpoint_url=url, config=patient())


@pytest.fixture(scope="module")
def secrets(url: str) -> "SecretsManagerClient":
    return generated(url)


def generated(url: str) -> "SecretsManagerClient":
    """Two secrets that CloudFormation generated."""
    formation = LocalSession().client("cloudformation", endpoint_url=url, config=patient())
    formation.create_stack(StackName="secrets", TemplateBody=json.dumps(SECRETS))
    assert wait_until(
        lambda: (
            formation.describe_stacks(StackName="secrets")["Stacks"][0]["StackStatus"] == "CREATE_COMPLETE"
        ),
        10,
    )
    return LocalSession().client("secretsmanager", endpoint_url=url, config=patient())


def fifo(sqs: "SQSClient", name: str, *messages: tuple[str, str]) -> str:
    """A FIFO queue with messages, each a group and a body that is the deduplication id as well."""
    queue = sqs.create_queue(QueueName=f"{name}.fifo", Attributes=FIFO)["QueueUrl"]  # type: ignore[arg-type]
    for group, body in messages:
        sqs.send_message(QueueUrl=queue, MessageBody=body, MessageGroupId=group, MessageDeduplicationId=body)
    return queue


def receive(sqs: "SQSClient", queue: str, **options: Any) -> list[tuple[str, str]]:
    """Body and receipt of what can be received now."""
    reply = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=1, **options)
    return [(each["Body"], each["ReceiptHandle"]) for each in reply.get("Messages", [])]


def bodies(sqs: "SQSClient", queue: str, **options: Any) -> list[str]:
    return [body for body, _ in receive(sqs, queue, **options)]


def test_a_group_is_locked_while_a_message_of_it_is_in_flight_and_others_are_not(sqs: "SQSClient") -> None:
    queue = fifo(sqs, "locked", ("a", "1"), ("a", "2"), ("b", "3"))
    ((first, receipt),) = receive(sqs, queue, VisibilityTimeout=30)
    assert (first, bodies(sqs, queue, VisibilityTimeout=30), bodies(sqs, queue)) == ("1", ["3"], [])
    sqs.delete_message(QueueUrl=queue, ReceiptHandle=receipt)
    assert bodies(sqs, queue) == ["2"]


def test_a_group_stays_locked_for_as_long_as_its_head_is_made_invisible(sqs: "SQSClient") -> None:
    queue = fifo(sqs, "prolonged", ("a", "1"), ("a", "2"))
    ((_, receipt),) = receive(sqs, queue, VisibilityTimeout=1)
    sqs.change_message_visibility(QueueUrl=queue, ReceiptHandle=receipt, VisibilityTimeout=30)
    time.sleep(1.1)
    assert bodies(sqs, queue) == []
    sqs.change_message_visibility(QueueUrl=queue, ReceiptHandle=receipt, VisibilityTimeout=0)
    assert bodies(sqs, queue) == ["1"]


def test_when_its_visibility_ends_the_head_comes_again_before_the_others(sqs: "SQSClient") -> None:
    queue = fifo(sqs, "expired", ("a", "1"), ("a", "2"))
    assert bodies(sqs, queue) == ["1"]
    assert bodies(sqs, queue, WaitTimeSeconds=3) == ["1"]


def test_a_repetition_is_dropped_within_its_group_alone_even_after_it_was_deleted(sqs: "SQSClient") -> None:
    queue = fifo(sqs, "deduplicated", ("a", "1"), ("a", "1"), ("b", "1"))
    found = [receive(sqs, queue, VisibilityTimeout=30) for _ in range(3)]
    assert [len(each) for each in found] == [1, 1, 0]
    sqs.delete_message(QueueUrl=queue, ReceiptHandle=found[0][0][1])
    sqs.send_message(QueueUrl=queue, MessageBody="1", MessageGroupId="a", MessageDeduplicationId="1")
    assert bodies(sqs, queue) == []


def test_a_queue_that_tells_copies_by_content_needs_no_id_and_an_id_counts_more(sqs: "SQSClient") -> None:
    attributes = {**FIFO, "ContentBasedDeduplication": "true"}
    queue = sqs.create_queue(QueueName="by-content.fifo", Attributes=attributes)["QueueUrl"]  # type: ignore[arg-type]
    for _ in range(2):
        sqs.send_message(QueueUrl=queue, MessageBody="1", MessageGroupId="a")
    sqs.send_message(QueueUrl=queue, MessageBody="1", MessageGroupId="b", MessageDeduplicationId="x")
    sqs.send_message(QueueUrl=queue, MessageBody="1", MessageGroupId="b", MessageDeduplicationId="y")
    found = 0
    for _ in range(4):
        for _, receipt in receive(sqs, queue, VisibilityTimeout=30):
            sqs.delete_message(QueueUrl=queue, ReceiptHandle=receipt)
            found += 1
    assert found == 3


def test_a_fifo_queue_takes_no_delay_of_a_message(sqs: "SQSClient") -> None:
    queue = fifo(sqs, "undelayed")
    entry = {"Id": "1", "MessageBody": "x", "MessageGroupId": "a", "MessageDeduplicationId": "d"}
    reply = sqs.send_message_batch(QueueUrl=queue, Entries=[{**entry, "DelaySeconds": 5}])  # type: ignore[typeddict-item]
    assert [each["Code"] for each in reply["Failed"]] == ["InvalidParameterValue"]


def test_a_standard_queue_keeps_the_delay_of_each_entry_and_its_group(sqs: "SQSClient") -> None:
    queue = sqs.create_queue(QueueName="standard")["QueueUrl"]
    sqs.send_message_batch(
        QueueUrl=queue,
        Entries=[
            {"Id": "late", "MessageBody": "late", "DelaySeconds": 2, "MessageGroupId": "example.com"},
            {"Id": "soon", "MessageBody": "soon", "MessageGroupId": "example.com"},
        ],
    )
    sent = time.time()
    reply = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10, AttributeNames=["All"])
    (soon,) = reply["Messages"]
    assert (soon["Body"], soon["Attributes"]["MessageGroupId"]) == ("soon", "example.com")
    assert bodies(sqs, queue, WaitTimeSeconds=5) == ["late"]
    assert time.time() - sent >= 1.8


def test_a_generated_secret_keeps_to_what_its_template_excludes(secrets: "SecretsManagerClient") -> None:
    signing = secrets.get_secret_value(SecretId="signing")["SecretString"]
    assert len(signing) == 44
    assert set(signing) <= set(string.ascii_letters + string.digits)
    fax = json.loads(secrets.get_secret_value(SecretId="fax")["SecretString"])
    assert fax["project"] == "put yours"
    assert set(fax["token"]) <= set(string.ascii_lowercase) - set("abc")


def test_a_generated_secret_is_the_same_at_the_next_start(
    secrets: "SecretsManagerClient", tmp_path: Path
) -> None:
    with emulated(tmp_path) as url:
        again = generated(url)
        for name in ("signing", "fax"):
            first = secrets.get_secret_value(SecretId=name)["SecretString"]
            assert again.get_secret_value(SecretId=name)["SecretString"] == first


def test_after_a_new_value_the_old_one_is_the_previous(secrets: "SecretsManagerClient") -> None:
    before = secrets.get_secret_value(SecretId="signing")["SecretString"]
    secrets.put_secret_value(SecretId="signing", SecretString="new")
    current = secrets.get_secret_value(SecretId="signing", VersionStage="AWSCURRENT")
    previous = secrets.get_secret_value(SecretId="signing", VersionStage="AWSPREVIOUS")
    assert (current["SecretString"], previous["SecretString"]) == ("new", before)
    assert abs(current["CreatedDate"].timestamp() - time.time()) < 10
    assert current["VersionId"] != previous["VersionId"]
