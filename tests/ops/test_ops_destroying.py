"""`mailroom destroy`: asks, refuses a protected stage, and empties the buckets that go with it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
import typer
from moto import mock_aws
from typer.testing import CliRunner, Result

from mailroom_ops.deploying.destroying import empty_what_goes
from tests.support.ops.shared import REGION
from tests.support.unit.fakes import client_error

TEMPLATE = {
    "Resources": {
        "Payloads": {"Type": "AWS::S3::Bucket", "DeletionPolicy": "Delete"},
        "Unprocessed": {"Type": "AWS::S3::Bucket", "DeletionPolicy": "Retain"},
        "Ledger": {"Type": "AWS::DynamoDB::GlobalTable", "DeletionPolicy": "Retain"},
        "Mailbox": {"Type": "AWS::DynamoDB::Table", "DeletionPolicy": "Delete"},
    }
}


class Formation:
    """CloudFormation, with one stack of two buckets."""

    def __init__(self, *, protected: bool = False) -> None:
        self._protected = protected

    def describe_stacks(self, StackName: str) -> Any:  # noqa: N803 - as AWS writes it
        if StackName != "mailroom-dev-mailbox":
            raise client_error("ValidationError", message=f"Stack with id {StackName} does not exist")
        return {"Stacks": [{"EnableTerminationProtection": self._protected}]}

    def get_paginator(self, _: str) -> Any:
        return self

    def paginate(self, **_: str) -> Iterator[Any]:
        names = {"Payloads": "payloads", "Unprocessed": "unprocessed", "Ledger": "ledger", "Mailbox": "box"}
        yield {
            "StackResourceSummaries": [
                {"LogicalResourceId": logical, "PhysicalResourceId": name} for logical, name in names.items()
            ]
        }


@pytest.fixture
def s3(tmp_path: Path) -> Iterator[Any]:
    for part in ("mailbox", "api"):
        (tmp_path / f"mailroom-dev-{part}.template.json").write_text(json.dumps(TEMPLATE))
    with mock_aws():
        client = boto3.client("s3", region_name=REGION)
        for name in ("payloads", "unprocessed"):
            client.create_bucket(Bucket=name)
            versioned: Any = {"Status": "Enabled"}
            client.put_bucket_versioning(Bucket=name, VersioningConfiguration=versioned)
            client.put_object(Bucket=name, Key="a", Body=b"1")
            client.put_object(Bucket=name, Key="a", Body=b"2")
            client.delete_object(Bucket=name, Key="a")
        yield client


def run_destroy(
    monkeypatch: pytest.MonkeyPatch, folder: Path, s3: Any, typed: str, *, protected: str = ""
) -> Result:
    formation = Formation(protected=protected == "stack")

    class Tables:
        def describe_table(self, TableName: str) -> Any:  # noqa: N803 - as AWS writes it
            assert TableName == "box"
            return {"Table": {"DeletionProtectionEnabled": protected == "table"}}

    class Session:
        def client(self, name: str) -> Any:
            return {"s3": s3, "cloudformation": formation, "dynamodb": Tables()}[name]

    monkeypatch.setattr("mailroom_ops.deploying.destroying.aws_session", Session)
    app = typer.Typer()
    app.command()(lambda: empty_what_goes("dev", folder, yes=False))
    return CliRunner().invoke(app, [], input=typed)


def versions(s3: Any, bucket: str) -> int:
    page = s3.list_object_versions(Bucket=bucket)
    return len(page.get("Versions", [])) + len(page.get("DeleteMarkers", []))


def test_a_confirmed_destruction_empties_only_the_buckets_that_are_deleted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, s3: Any
) -> None:
    result = run_destroy(monkeypatch, tmp_path, s3, "dev\n")
    assert result.exit_code == 0, result.output
    assert "These stacks are deleted: mailroom-dev-mailbox." in result.stdout
    assert "Retained, by the stage's settings: DynamoDB::GlobalTable, S3::Bucket." in result.stdout
    assert (versions(s3, "payloads"), versions(s3, "unprocessed")) == (0, 3)


def test_a_destruction_without_the_typed_stage_name_deletes_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, s3: Any
) -> None:
    result = run_destroy(monkeypatch, tmp_path, s3, "yes\n")
    assert (result.exit_code, "Nothing was deleted." in result.stderr) == (2, True)
    assert versions(s3, "payloads") == 3


@pytest.mark.parametrize(
    ("protected", "setting"), [("stack", "termination_protection"), ("table", "deletion_protection")]
)
def test_a_protected_stage_is_refused_before_the_confirmation_and_before_a_bucket_is_emptied(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, s3: Any, protected: str, setting: str
) -> None:
    result = run_destroy(monkeypatch, tmp_path, s3, "dev\n", protected=protected)
    assert result.exit_code == 2
    assert f"Set mailroom.dev.deployment.{setting} to false" in result.stderr.replace("\n", " ")
    assert "These stacks are deleted" not in result.stdout
    assert versions(s3, "payloads") == 3
