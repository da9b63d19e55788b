"""The tables and the payload bucket."""

import json

import pytest

from tests.support.stacks.templates import Templates, text_of


def test_the_ledgers_indexes_have_the_attributes_that_their_readers_use(dev: Templates) -> None:
    ledger = dev["mailbox"].one("DynamoDB::Table", TableName="mailroom-dev-ledger")
    indexes = {
        each["IndexName"]: (
            [key["AttributeName"] for key in each["KeySchema"]],
            each["Projection"].get("NonKeyAttributes", each["Projection"]["ProjectionType"]),
        )
        for each in ledger["GlobalSecondaryIndexes"]
    }
    assert indexes == {
        "failures": (["failed_as", "failed_at"], "ALL"),
        "lines": (["line", "submittedAt"], ["provider_ids"]),
        "waiting": (["waits_in", "waits_at"], ["status", "putAt", "wait", "campaign_start"]),
    }


@pytest.mark.parametrize("table", ["suppressions", "preferences"])
def test_the_choices_of_recipients_never_expire(dev: Templates, table: str) -> None:
    properties = dev["mailbox"].one("DynamoDB::Table", TableName=f"mailroom-dev-{table}")
    assert properties["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert "TimeToLiveSpecification" not in properties


@pytest.mark.parametrize("table", ["mailbox", "ledger", "contents", "search", "campaign-runs"])
def test_the_items_of_messages_expire_in_every_table(dev: Templates, table: str) -> None:
    properties = dev["mailbox"].one("DynamoDB::Table", TableName=f"mailroom-dev-{table}")
    assert properties["TimeToLiveSpecification"] == {"AttributeName": "ttl", "Enabled": True}


def test_release_is_invoked_once_every_minute(dev: Templates) -> None:
    rules = [
        rule for rule in dev["routing"].all("Events::Rule") if rule["ScheduleExpression"] == "rate(1 minute)"
    ]
    assert [json.loads(target["Input"]) for rule in rules for target in rule["Targets"]] == [{"parts": "all"}]


@pytest.mark.parametrize(
    ("stack", "bucket", "days"), [("mailbox", "payloads", 90), ("routing", "unprocessed", 30)]
)
def test_a_bucket_is_private_and_encrypted_and_its_objects_expire(
    dev: Templates, stack: str, bucket: str, days: int
) -> None:
    (found,) = dev[stack].all("S3::Bucket")
    assert text_of(found["BucketName"]) == f"mailroom-dev-{bucket}-111122223333-eu-central-1"
    assert set(found["PublicAccessBlockConfiguration"].values()) == {True}
    (encryption,) = found["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert encryption == {"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
    assert found["LifecycleConfiguration"]["Rules"][0]["ExpirationInDays"] == days


@pytest.mark.parametrize("stack", ["mailbox", "routing"])
def test_a_bucket_refuses_requests_without_tls(dev: Templates, stack: str) -> None:
    (policy,) = dev[stack].all("S3::BucketPolicy")
    refusals = policy["PolicyDocument"]["Statement"]
    assert {"Bool": {"aws:SecureTransport": "false"}} in [each["Condition"] for each in refusals]
    assert {each["Effect"] for each in refusals} == {"Deny"}
