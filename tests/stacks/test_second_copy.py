"""The daily exports of opt-outs and suppressions to a bucket, which the setting `deployment.second_copy`
names."""

import json
import re
from fnmatch import fnmatchcase
from typing import Any

import pytest
from botocore.loaders import create_loader
from botocore.model import ServiceModel
from botocore.validate import validate_parameters

from mailroom_ops.repair.exported import TABLES
from tests.support import ROOT
from tests.support.stacks.alarm import alarms
from tests.support.stacks.refusals import dev_with, refusal_of_setting
from tests.support.stacks.templates import Template, Templates, allowed, text_of
from tests.support.stacks.variants import up_to

PLACE = "eu-central-1:111122223333"
TABLE = f"arn:aws:dynamodb:{PLACE}:table/mailroom-dev-"


@pytest.fixture(scope="module")
def mailbox(everything: Templates) -> Template:
    return everything["mailbox"]


def inputs(mailbox: Template) -> dict[str, dict[str, str]]:
    """Return the request that each schedule sends, by the name of the schedule."""
    names = {
        f"<{logical}.Arn>": resource["Properties"]["TableName"]
        for logical, resource in mailbox.body["Resources"].items()
        if resource["Type"] == "AWS::DynamoDB::Table"
    }

    def request(schedule: dict[str, Any]) -> dict[str, str]:
        fields: dict[str, str] = json.loads(text_of(schedule["Target"]["Input"]))
        return {**fields, "TableArn": names[fields["TableArn"]]}

    return {schedule["Name"]: request(schedule) for schedule in mailbox.all("Scheduler::Schedule")}


def test_each_table_of_a_second_copy_is_exported_once_a_day_to_the_bucket_of_the_setting(
    mailbox: Template,
) -> None:
    schedules = mailbox.all("Scheduler::Schedule")
    assert {schedule["ScheduleExpression"] for schedule in schedules} == {"rate(1 day)"}
    assert {text_of(schedule["Target"]["Arn"]) for schedule in schedules} == {
        "arn:aws:scheduler:::aws-sdk:dynamodb:exportTableToPointInTime"
    }
    tables = {f"mailroom-dev-{table}" for table in TABLES}
    assert inputs(mailbox) == {
        table: {
            "TableArn": table,
            "S3Bucket": "acme-second-copies",
            "S3BucketOwner": "444455556666",
            "S3Prefix": table,
            "S3SseAlgorithm": "AES256",
            "ExportFormat": "DYNAMODB_JSON",
        }
        for table in tables
    }


def test_each_export_request_of_a_second_copy_is_valid_by_the_description_of_dynamodbs_api(
    mailbox: Template,
) -> None:
    """A deployment does not validate the requests that EventBridge Scheduler sends."""
    model = ServiceModel(create_loader().load_service_model("dynamodb", "service-2"))
    shape: Any = model.operation_model("ExportTableToPointInTime").input_shape
    for request in inputs(mailbox).values():
        validate_parameters(request, shape)


def test_the_role_of_a_second_copy_may_only_export_its_tables_and_put_objects_below_their_names(
    mailbox: Template,
) -> None:
    (role,) = mailbox.all("IAM::Role")
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    group = f"arn:aws:scheduler:{PLACE}:schedule-group/mailroom-dev-second-copy"
    assert text_of(trust["Condition"]["StringEquals"]["aws:SourceArn"]) == group
    objects = {f"arn:aws:s3:::acme-second-copies/mailroom-dev-{table}/*" for table in TABLES}
    permissions = allowed(role)
    assert len(permissions.pop("dynamodb:ExportTableToPointInTime")) == len(TABLES)
    assert permissions == dict.fromkeys(
        ("s3:AbortMultipartUpload", "s3:PutObject", "s3:PutObjectAcl"), objects
    )


def test_the_bucket_policy_on_the_page_allows_what_the_role_of_a_second_copy_may_do(
    mailbox: Template,
) -> None:
    """Except that the page has another stage, and one pattern for the names of both tables."""
    page = (ROOT / "docs" / "how-to" / "second-copy.md").read_text().replace("-prod-", "-dev-")
    blocks = re.findall(r"^   ```json\n(.*?)^   ```$", page, re.M | re.S)
    writing = json.loads(blocks[0])["Statement"][0]
    resources = mailbox.body["Resources"].items()
    (logical_id,) = (name for name, resource in resources if resource["Type"] == "AWS::IAM::Role")
    name = f"arn:aws:iam::111122223333:role/mailroom-dev-mailbox-{logical_id}-AbCdEfGhIjKl"
    assert fnmatchcase(name, writing["Condition"]["ArnLike"]["aws:PrincipalArn"])
    permissions = allowed(mailbox.all("IAM::Role")[0])
    assert {*writing["Action"]} == {action for action in permissions if action.startswith("s3:")}
    assert all(fnmatchcase(objects, writing["Resource"]) for objects in permissions["s3:PutObject"])


def test_the_bucket_of_a_second_copy_belongs_to_the_stages_account_by_default() -> None:
    mailbox = up_to("mailbox", {"deployment.second_copy": {"bucket": "copies"}})["mailbox"]
    assert {request["S3BucketOwner"] for request in inputs(mailbox).values()} == {"111122223333"}


def test_an_alarm_rings_if_an_export_of_a_second_copy_cannot_be_started(everything: Templates) -> None:
    (drops,) = (alarm for alarm in alarms(everything) if alarm.name.endswith("-aws-drops"))
    group = (("ScheduleGroup", "mailroom-dev-second-copy"),)
    assert ("AWS/Scheduler", "TargetErrorCount", group) in drops.metrics()


def test_a_stage_does_not_export_its_tables_by_default(dev: Templates) -> None:
    assert dev_with("search", value=True).deployment.second_copy is None
    assert not dev["mailbox"].all("Scheduler::Schedule")


def test_a_second_copy_without_point_in_time_recovery_is_refused() -> None:
    settings = {"point_in_time_recovery": False, "second_copy": {"bucket": "copies"}}
    sentence = refusal_of_setting("deployment", settings)
    assert sentence.startswith("mailroom.dev.deployment: {")
    assert sentence.endswith(
        "has a second_copy, and DynamoDB exports only tables with point-in-time recovery; set "
        "point_in_time_recovery to true, or second_copy to null."
    )


@pytest.mark.parametrize("settings", [{"bucket": "s3://copies"}, {"bucket": "copies", "account": "prod"}])
def test_an_invalid_bucket_or_account_of_a_second_copy_is_refused(settings: dict[str, str]) -> None:
    assert "should match pattern" in refusal_of_setting("deployment.second_copy", settings)
