"""Lambda stops a loop of functions over queues, unless each function of it says otherwise."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.stacks.loops import loops, recursion_allowed
from tests.support.stacks.templates import Template, Templates

FEEDING_THEMSELVES = {"collect", "send-fax"}
ONCE = "release"
"""Function that invokes itself only once: a round starts no other round, as
test_a_round_of_release_does_not_invoke_another_function shows. So Lambda's limit of about 16 rounds stays."""


def test_only_the_functions_collect_send_fax_and_release_can_cause_their_own_invocation(
    whole: Templates,
) -> None:
    assert {*loops(whole)} == {frozenset({f"mailroom-dev-{name}"}) for name in (*FEEDING_THEMSELVES, ONCE)}


@pytest.mark.parametrize("name", ["dev", "prod", "whole", "everything", "by_resend", "two_providers"])
def test_recursion_is_allowed_exactly_for_the_functions_of_a_loop_except_release(
    request: pytest.FixtureRequest, name: str
) -> None:
    stage: Templates = request.getfixturevalue(name)
    looping = {function for loop in loops(stage) for function in loop}
    once = {function for function in looping if function.endswith(f"-{ONCE}")}
    assert len(once) == 1
    assert recursion_allowed(stage) == looping - once


def function(name: str, action: str, resource: object) -> dict[str, Any]:
    """Return the resources of a function that may do `action` on `resource`."""
    statement = {"Effect": "Allow", "Action": action, "Resource": resource}
    policies = [{"PolicyDocument": {"Statement": [statement]}}]
    role = {"Fn::GetAtt": [f"{name}Role", "Arn"]}
    return {
        name: {"Type": "AWS::Lambda::Function", "Properties": {"FunctionName": name, "Role": role}},
        f"{name}Role": {"Type": "AWS::IAM::Role", "Properties": {"Policies": policies}},
    }


def resource(kind: str, **properties: object) -> dict[str, Any]:
    return {"Type": f"AWS::{kind}", "Properties": properties}


def arn_attribute(name: str) -> dict[str, Any]:
    return {"Fn::GetAtt": [name, "Arn"]}


def polls(source: object, reader: str) -> dict[str, Any]:
    return resource("Lambda::EventSourceMapping", EventSourceArn=source, FunctionName={"Ref": reader})


def looping(resources: Mapping[str, Any]) -> set[frozenset[str]]:
    templates = Templates(Path(), {"one": Template({"Resources": dict(resources)})})
    return {*loops(templates)}


QUEUE = {"Queue": resource("SQS::Queue", QueueName="queue")}
SECOND = {
    **QUEUE,
    **function("second", "sqs:SendMessage", arn_attribute("Queue")),
    "Mapping": polls(arn_attribute("Queue"), "first"),
}


def test_the_check_finds_a_loop_of_functions_through_a_topic_and_its_queue() -> None:
    topic = {
        **function("first", "sns:Publish", {"Ref": "Topic"}),
        "Topic": resource("SNS::Topic", TopicName="topic"),
        "Answers": resource("SQS::Queue", QueueName="answers"),
        "Subscribed": resource(
            "SNS::Subscription", Protocol="sqs", TopicArn={"Ref": "Topic"}, Endpoint=arn_attribute("Answers")
        ),
        "Read": polls(arn_attribute("Answers"), "second"),
    }
    assert looping({**SECOND, **topic}) == {frozenset({"first", "second"})}
    del topic["Subscribed"]
    assert looping({**SECOND, **topic}) == set()


def test_the_check_finds_a_loop_of_functions_through_a_bucket_that_notifies_a_function() -> None:
    notified = {
        "LambdaConfigurations": [{"Event": "s3:ObjectCreated:*", "Function": arn_attribute("second")}]
    }
    objects = {"Fn::Join": ["", [arn_attribute("Bucket"), "/*"]]}
    bucket = {
        **function("first", "s3:PutObject", objects),
        "Bucket": resource("S3::Bucket", BucketName="bucket", NotificationConfiguration=notified),
    }
    assert looping({**SECOND, **bucket}) == {frozenset({"first", "second"})}


def test_the_check_finds_a_loop_of_functions_through_a_direct_invocation() -> None:
    invoked = function("first", "lambda:InvokeFunction", arn_attribute("second"))
    assert looping({**SECOND, **invoked}) == {frozenset({"first", "second"})}


def test_the_check_leaves_out_a_loop_through_a_table_because_lambda_does_not_stop_it() -> None:
    table = {
        **function("first", "dynamodb:UpdateItem", arn_attribute("Table")),
        "Table": resource("DynamoDB::Table", TableName="table"),
        "Stream": polls({"Fn::GetAtt": ["Table", "StreamArn"]}, "second"),
    }
    assert looping({**SECOND, **table}) == set()
