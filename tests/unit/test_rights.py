"""How the pipeline's tests judge what a function called: as IAM would, as far as functions' roles need it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import ROOT
from tests.support.pipeline.recorded import FORCED, RECORDER, UNUSED, Rights
from tests.support.pipeline.rights import Request, arn_in_stage, grants_of, requests_of, requests_of_lambda
from tests.support.unit.rights import Judge
from tests.support.unit.shared import Aws

F = "mailroom-local-f"
LEDGER = arn_in_stage("dynamodb", "table/mailroom-local-ledger")
QUEUE = arn_in_stage("sqs", "mailroom-local-mail")


def policy(*statements: dict[str, Any]) -> dict[str, Any]:
    return {"Statement": [{"Effect": "Allow", **each} for each in statements]}


def allowed(request: Request, *statements: dict[str, Any]) -> bool:
    return any(grant.allows(request) for grant in grants_of(F, [policy(*statements)]))


READ = {"Action": ["dynamodb:GetItem", "dynamodb:Query"], "Resource": [LEDGER, f"{LEDGER}/index/*"]}


@pytest.mark.parametrize(
    ("action", "resource", "allows"),
    [
        ("dynamodb:GetItem", LEDGER, True),
        ("dynamodb:Query", f"{LEDGER}/index/lines", True),
        ("dynamodb:PutItem", LEDGER, False),
        ("dynamodb:GetItem", f"{LEDGER}-2", False),
        ("dynamodb:GetItem", LEDGER[:-1], False),
    ],
)
def test_a_grant_allows_its_actions_on_its_resources_and_no_others(
    action: str, resource: str, allows: bool
) -> None:
    assert allowed(Request(F, action, resource), READ) is allows
    assert not allowed(Request(f"{F}-2", action, resource), READ)


def test_stars_and_question_marks_of_a_pattern_are_wildcards_and_brackets_and_dots_are_literal() -> None:
    for pattern, name, allows in (
        ("app-??????", "app-a1b2c3", True),
        ("app-??????", "app-a1b2c", False),
        ("fax.fifo", "fax-fifo", False),
        ("a[bc]", "ab", False),
        ("a[bc]", "a[bc]", True),
        ("bulk/*", "Bulk/1", False),
    ):
        assert (
            allowed(Request(F, "s3:GetObject", name), {"Action": "s3:GetObject", "Resource": pattern})
            is allows
        )


@pytest.mark.parametrize(
    ("operator", "sender", "allows"),
    [
        ("StringEqualsIgnoreCase", "Mailroom@Example.com", True),
        ("StringEquals", "Mailroom@Example.com", False),
        ("StringEquals", "mailroom@example.com", True),
        ("StringEqualsIgnoreCase", "ceo@bank.example", False),
    ],
)
def test_a_condition_of_a_grant_is_evaluated_with_the_values_of_the_call(
    operator: str, sender: str, allows: bool
) -> None:
    condition = {operator: {"ses:FromAddress": ["news@example.com", "mailroom@example.com"]}}
    statement = {"Action": "ses:SendEmail", "Resource": "*", "Condition": condition}
    assert allowed(Request(F, "ses:SendEmail", "x", (("ses:FromAddress", sender),)), statement) is allows
    assert not allowed(Request(F, "ses:SendEmail", "x"), statement)


def test_an_unsupported_condition_effect_or_operation_raises_an_error() -> None:
    for condition in (
        {"Bool": {"ses:FromAddress": "x"}},
        {"StringEquals": {"aws:SourceIp": "x"}},
    ):
        with pytest.raises(LookupError, match=r"rights\.py"):
            allowed(Request(F, "a:b", "x"), {"Action": "a:b", "Resource": "x", "Condition": condition})
    with pytest.raises(LookupError, match="denies"):
        list(grants_of(F, [policy({"Effect": "Deny", "Action": "a:b", "Resource": "x"})]))
    for service, operation in (
        ("dynamodb", "TransactGetItems"),
        ("kms", "Decrypt"),
        ("s3", "DeleteObject"),
    ):
        with pytest.raises(LookupError, match=r"rights\.py"):
            requests_of(F, service, operation, {"Bucket": "b", "Key": "k"})


def test_lambda_itself_needs_permissions_for_logs_and_event_source_mappings() -> None:
    bucket = "arn:aws:s3:::unprocessed"
    mappings: list[dict[str, Any]] = [
        {"EventSourceArn": QUEUE},
        {
            "EventSourceArn": f"{LEDGER}/stream/2026",
            "DestinationConfig": {"OnFailure": {"Destination": bucket}},
        },
    ]
    asked = {(each.action, each.resource) for each in requests_of_lambda(F, mappings)}
    assert ("sqs:DeleteMessage", QUEUE) in asked
    assert ("dynamodb:GetRecords", f"{LEDGER}/stream/2026") in asked
    assert ("s3:ListBucket", bucket) in asked
    assert ("logs:PutLogEvents", arn_in_stage("logs", f"log-group:/aws/lambda/{F}:log-stream:any")) in asked
    assert {action for action, _ in asked} == {
        *("logs:CreateLogStream", "logs:PutLogEvents", "s3:ListBucket", "s3:PutObject"),
        *("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"),
        *(
            "dynamodb:DescribeStream",
            "dynamodb:GetRecords",
            "dynamodb:GetShardIterator",
            "dynamodb:ListStreams",
        ),
    }


def test_a_secret_that_is_named_is_granted_by_its_name_or_by_its_arn() -> None:
    read = "secretsmanager:GetSecretValue"
    key = Request(F, read, "mailroom-local-search-key")
    for resource in (key.resource, arn_in_stage("secretsmanager", f"secret:{key.resource}-??????")):
        assert allowed(key, {"Action": read, "Resource": resource})
    another = arn_in_stage("secretsmanager", "secret:mailroom-local-fax-??????")
    assert not allowed(key, {"Action": read, "Resource": another})


class RecordedStage(Rights):
    """A stage whose functions have asked for these actions on the ledger, of which it grants `READ`."""

    def __init__(self, *actions: str) -> None:
        self.grants = [*grants_of(F, [policy(READ)])]
        self.requests = {Request(F, action, LEDGER) for action in actions}


def test_a_call_without_a_grant_is_denied() -> None:
    assert not RecordedStage("dynamodb:GetItem", "dynamodb:Query").denied
    assert RecordedStage("dynamodb:GetItem", "dynamodb:PutItem").denied == [
        Request(F, "dynamodb:PutItem", LEDGER)
    ]


def test_a_right_of_a_function_is_reported_as_unused_if_no_recorded_request_needs_it() -> None:
    index = f"{LEDGER}/index/*"
    unused = RecordedStage("dynamodb:GetItem", "dynamodb:Query").unused
    assert [str(each) for each in unused] == [f"{F}: {each} on {index}" for each in READ["Action"]]


def test_a_denied_request_is_excused_only_by_a_row_for_its_function_and_action() -> None:
    forced = RecordedStage()
    forced.requests = {Request("mailroom-local-dispatch", "sqs:SendMessage", "arn:x:mail-that-is-not-there")}
    (request,) = forced.denied
    assert [row.action for row in FORCED if row.covers(request)] == ["sqs:SendMessage"]
    (put,) = RecordedStage("dynamodb:PutItem").denied
    assert not any(row.covers(put) for row in FORCED)


def test_the_page_on_rights_has_the_reason_for_each_right_that_no_test_uses() -> None:
    page = (ROOT / "docs/reference/rights.md").read_text()
    assert UNUSED
    for row in UNUSED:
        assert f"| {row.why} |" in page


CALLS = """
import boto3
from botocore.exceptions import EndpointConnectionError

def called(service, operation, **parameters):
    try:
        getattr(boto3.client(service), operation)(**parameters)
    except EndpointConnectionError:
        pass  # what counts was written before

key = {"id": {"S": "secret words"}}
insert = "INSERT INTO \\"mailroom-local-ledger\\" VALUE {'id': ?}"
called("dynamodb", "get_item", TableName="mailroom-local-ledger", Key=key)
called("dynamodb", "get_item", TableName="mailroom-local-ledger", Key={"id": {"S": "others"}})
called("dynamodb", "query", TableName="mailroom-local-ledger", IndexName="lines", KeyConditionExpression="x")
called("dynamodb", "batch_get_item", RequestItems={"mailroom-local-ledger": {"Keys": [key]}})
called("dynamodb", "batch_execute_statement", Statements=[{"Statement": insert, "Parameters": [key["id"]]}])
updated = {"TableName": "mailroom-local-ledger", "Key": key, "UpdateExpression": "SET secret = words"}
called("dynamodb", "transact_write_items", TransactItems=[{"Update": updated}])
entry = {"Id": "0", "MessageBody": "secret words"}
url = "http://localhost/000000000000/mailroom-local-mail"
called("sqs", "send_message_batch", QueueUrl=url, Entries=[entry])
called("s3", "head_object", Bucket="b", Key="k")
boto3.client("s3").generate_presigned_url("get_object", Params={"Bucket": "b", "Key": "signed"})
text = {"Simple": {"Subject": {"Data": "secret words"}, "Body": {"Text": {"Data": "secret words"}}}}
mail = {"FromEmailAddress": "Shop <shop@example.com>", "ConfigurationSetName": "mailroom-local"}
called("sesv2", "send_email", **mail, Content=text)
called("secretsmanager", "get_secret_value", SecretId="arn:secret")
called("sns", "publish", TopicArn="arn:topic", Message="secret words")
called("sns", "create_platform_endpoint", PlatformApplicationArn="arn:app", Token="secret words")
event = {"EventBusName": "shop", "Detail": "{}", "DetailType": "secret words", "Source": "x"}
called("events", "put_events", Entries=[event])
"""


@pytest.mark.process
def test_every_call_of_a_process_is_recorded_once_and_becomes_a_request_to_iam(
    tmp_path: Path,
) -> None:
    subprocess.run(
        [sys.executable, "-c", CALLS],
        env=os.environ
        | {
            "PYTHONPATH": str(RECORDER),
            "RECORDED_CALLS": str(tmp_path),
            "AWS_LAMBDA_FUNCTION_NAME": F,
            "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
            "AWS_MAX_ATTEMPTS": "1",
        },
        check=True,
        timeout=60,
    )
    (file,) = tmp_path.iterdir()
    assert file.name.startswith(f"{F}-")
    lines = file.read_text().splitlines()
    assert "secret words" not in file.read_text()
    sender = (("ses:FromAddress", "shop@example.com"),)
    asked = [request for line in lines for request in requests_of(F, *json.loads(line))]
    assert asked == [
        Request(F, action, resource, context)
        for action, resource, context in (
            ("dynamodb:GetItem", LEDGER, ()),
            ("dynamodb:Query", f"{LEDGER}/index/lines", ()),
            ("dynamodb:BatchGetItem", LEDGER, ()),
            ("dynamodb:PartiQLInsert", LEDGER, ()),
            ("dynamodb:UpdateItem", LEDGER, ()),
            ("sqs:SendMessage", QUEUE, ()),
            ("s3:GetObject", "arn:aws:s3:::b/k", ()),
            ("s3:GetObject", "arn:aws:s3:::b/signed", ()),
            ("ses:SendEmail", arn_in_stage("ses", "identity/shop@example.com"), sender),
            ("ses:SendEmail", arn_in_stage("ses", "configuration-set/mailroom-local"), sender),
            ("secretsmanager:GetSecretValue", "arn:secret", ()),
            ("sns:Publish", "arn:topic", ()),
            ("sns:CreatePlatformEndpoint", "arn:app", ()),
            ("events:PutEvents", arn_in_stage("events", "event-bus/shop"), ()),
        )
    ]


@pytest.mark.process
def test_a_unit_test_fails_at_a_call_that_the_functions_role_does_not_grant(judge: Judge, aws: Aws) -> None:
    call = "sqs", "SendMessage", {"QueueUrl": aws.urls["feedback"]}
    assert judge.refusals("twilio_callbacks", *call) == []
    (refusal,) = judge.refusals("retry_fax", *call)
    assert refusal.startswith("retry_fax: sqs:SendMessage on arn:aws:sqs:")
