"""The tables and the payload bucket."""

import json

import pytest

from tests.support.stacks.templates import Template, Templates, text

KEYS = [{"AttributeName": "id", "KeyType": "HASH"}, {"AttributeName": "event_type", "KeyType": "RANGE"}]


@pytest.mark.parametrize(("table", "view"), [("mailbox", "NEW_IMAGE"), ("ledger", "NEW_AND_OLD_IMAGES")])
def test_a_table_is_keyed_by_id_and_event_type_streams_and_forgets_by_ttl(
    dev: Templates, table: str, view: str
) -> None:
    found = dev["mailbox"].one("DynamoDB::Table", TableName=f"mailroom-dev-{table}")
    assert found["KeySchema"] == KEYS
    assert found["StreamSpecification"] == {"StreamViewType": view}
    assert found["TimeToLiveSpecification"] == {"AttributeName": "ttl", "Enabled": True}
    assert found["BillingMode"] == "PAY_PER_REQUEST"


def test_failures_are_listed_by_day_with_what_an_operator_needs(dev: Templates) -> None:
    ledger = dev["mailbox"].one("DynamoDB::Table", TableName="mailroom-dev-ledger")
    assert ledger["GlobalSecondaryIndexes"][0] == {
        "IndexName": "failures",
        "KeySchema": [
            {"AttributeName": "failed_on", "KeyType": "HASH"},
            {"AttributeName": "completedAt", "KeyType": "RANGE"},
        ],
        "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["error", "to", "attempts"]},
    }
    assert {"AttributeName": "failed_on", "AttributeType": "S"} in ledger["AttributeDefinitions"]
    assert {"AttributeName": "completedAt", "AttributeType": "N"} in ledger["AttributeDefinitions"]


def test_a_lines_faxes_are_listed_by_their_submission_with_the_providers_ids(dev: Templates) -> None:
    ledger = dev["mailbox"].one("DynamoDB::Table", TableName="mailroom-dev-ledger")
    assert ledger["GlobalSecondaryIndexes"][1:2] == [
        {
            "IndexName": "lines",
            "KeySchema": [
                {"AttributeName": "line", "KeyType": "HASH"},
                {"AttributeName": "submittedAt", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["provider_ids"]},
        }
    ]
    assert {"AttributeName": "line", "AttributeType": "S"} in ledger["AttributeDefinitions"]
    assert {"AttributeName": "submittedAt", "AttributeType": "N"} in ledger["AttributeDefinitions"]


def test_messages_that_wait_are_listed_by_time_or_place_with_what_release_decides_by(dev: Templates) -> None:
    ledger = dev["mailbox"].one("DynamoDB::Table", TableName="mailroom-dev-ledger")
    assert ledger["GlobalSecondaryIndexes"][2:] == [
        {
            "IndexName": "waiting",
            "KeySchema": [
                {"AttributeName": "waits_in", "KeyType": "HASH"},
                {"AttributeName": "waits_at", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["status", "putAt", "wait"]},
        }
    ]
    assert {"AttributeName": "waits_at", "AttributeType": "N"} in ledger["AttributeDefinitions"]


def test_the_contents_of_messages_that_wait_are_apart_and_forgotten_by_ttl(dev: Templates) -> None:
    contents = dev["mailbox"].one("DynamoDB::Table", TableName="mailroom-dev-contents")
    assert contents["KeySchema"] == [
        {"AttributeName": "message", "KeyType": "HASH"},
        {"AttributeName": "version", "KeyType": "RANGE"},
    ]
    assert contents["TimeToLiveSpecification"] == {"AttributeName": "ttl", "Enabled": True}
    assert contents["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert "StreamSpecification" not in contents


def test_release_is_invoked_each_minute_for_each_shard_and_each_line(dev: Templates) -> None:
    rules = [
        rule for rule in dev["routing"].all("Events::Rule") if rule["ScheduleExpression"] == "rate(1 minute)"
    ]
    parts = [json.loads(target["Input"]) for rule in rules for target in rule["Targets"]]
    assert parts == [*({"shard": shard} for shard in range(8)), {"line": "mail"}, {"line": "sms"}]


def test_a_suppressed_recipient_is_found_by_channel_and_stays_for_ever(dev: Templates) -> None:
    found = dev["mailbox"].one("DynamoDB::Table", TableName="mailroom-dev-suppressions")
    assert found["KeySchema"] == [
        {"AttributeName": "recipient", "KeyType": "HASH"},
        {"AttributeName": "channel", "KeyType": "RANGE"},
    ]
    assert found["BillingMode"] == "PAY_PER_REQUEST"
    assert found["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert "StreamSpecification" not in found
    assert "TimeToLiveSpecification" not in found
    for what in ("SuppressionsTableName", "SuppressionsTableArn"):
        assert dev["mailbox"].output(what)


def test_a_recipients_choice_is_found_by_topic_and_stays_for_ever(dev: Templates) -> None:
    found = dev["mailbox"].one("DynamoDB::Table", TableName="mailroom-dev-preferences")
    assert found["KeySchema"] == [
        {"AttributeName": "recipient", "KeyType": "HASH"},
        {"AttributeName": "topic", "KeyType": "RANGE"},
    ]
    assert found["BillingMode"] == "PAY_PER_REQUEST"
    assert found["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert "StreamSpecification" not in found
    assert "TimeToLiveSpecification" not in found
    for what in ("PreferencesTableName", "PreferencesTableArn"):
        assert dev["mailbox"].output(what)


def test_prod_outlives_mistakes(prod: Templates) -> None:
    kept = ("AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::SecretsManager::Secret")
    data = [
        each
        for stack in prod.stacks.values()
        for each in stack.body["Resources"].values()
        if each["Type"] in kept
    ]
    assert len(data) == 14
    # What else becomes of them: test_deploy_protection.py.
    assert {each["UpdateReplacePolicy"] for each in data} == {"Retain"}
    for table in prod["mailbox"].all("DynamoDB::Table"):
        assert table["DeletionProtectionEnabled"] is True
        assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}


def test_prod_stacks_cannot_be_deleted_by_hand(prod: Templates) -> None:
    manifest = (prod.folder / "manifest.json").read_text()
    assert manifest.count('"terminationProtection": true') == 9


@pytest.mark.parametrize(
    ("stack", "bucket", "days"), [("mailbox", "payloads", 90), ("routing", "unprocessed", 30)]
)
def test_a_bucket_is_private_encrypted_and_forgets(
    dev: Templates, stack: str, bucket: str, days: int
) -> None:
    (found,) = dev[stack].all("S3::Bucket")
    assert text(found["BucketName"]) == f"mailroom-dev-{bucket}-111122223333-eu-central-1"
    assert set(found["PublicAccessBlockConfiguration"].values()) == {True}
    (encryption,) = found["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert encryption == {"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
    assert found["LifecycleConfiguration"]["Rules"][0]["ExpirationInDays"] == days


@pytest.mark.parametrize("stack", ["mailbox", "routing"])
def test_a_bucket_refuses_all_that_is_not_tls(dev: Templates, stack: str) -> None:
    (policy,) = dev[stack].all("S3::BucketPolicy")
    refusals = policy["PolicyDocument"]["Statement"]
    assert {"Bool": {"aws:SecureTransport": "false"}} in [each["Condition"] for each in refusals]
    assert {each["Effect"] for each in refusals} == {"Deny"}


def test_names_arns_and_streams_are_outputs(dev: Templates) -> None:
    mailbox: Template = dev["mailbox"]
    for table in ("Mailbox", "Ledger"):
        for what in ("TableName", "TableArn", "StreamArn"):
            assert mailbox.output(f"{table}{what}")
    assert mailbox.output("PayloadBucketName")


def test_everything_carries_the_stages_tags(dev: Templates) -> None:
    wanted = [{"Key": "service", "Value": "mailroom"}, {"Key": "stage", "Value": "dev"}]
    for kind in ("DynamoDB::Table", "S3::Bucket"):
        assert all(each["Tags"] == wanted for each in dev["mailbox"].all(kind))
