"""Resources of campaigns: their schedules, their functions, and the files in their bundles."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mailroom.campaigns import definition
from mailroom.campaigns.definition import File, Module, Postgresql
from mailroom.environment import DatabaseSettings
from mailroom_stacks.campaigns import DEFINITIONS, read_secrets
from tests.support.stacks.campaign_folders import (
    AUDIENCES,
    DATABASES,
    MODULE,
    NETWORK,
    WEEKLY,
    enabled,
    of_each_kind,
    put_campaign,
    with_campaigns,
)
from tests.support.stacks.refusals import dev_with
from tests.support.stacks.templates import Template, Templates, allowed, text_of

COLLECT, COMPOSE = "mailroom-dev-collect", "mailroom-dev-compose"
ACCOUNT = "eu-central-1:111122223333"
WHERE = {"host": "app.cluster-x.eu-central-1.rds.amazonaws.com", "port": 5433, "dbname": "shop"}
INTERFACES = {
    *("ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface", "ec2:DescribeNetworkInterfaces"),
    *("ec2:DescribeSubnets", "ec2:AssignPrivateIpAddresses", "ec2:UnassignPrivateIpAddresses"),
}


@pytest.fixture(scope="module")
def weekly(tmp_path_factory: pytest.TempPathFactory) -> Template:
    """The stack of a stage with one campaign over PostgreSQL, without code of its own."""
    root = tmp_path_factory.mktemp("weekly")
    return with_campaigns(put_campaign(root), "weekly")


@pytest.fixture(scope="module")
def with_code(tmp_path_factory: pytest.TempPathFactory) -> Template:
    """The stack with one campaign whose code asks another database too; the first one's place is set."""
    campaigns = put_campaign(tmp_path_factory.mktemp("with-code"), module=MODULE, databases=["shop"])
    databases = {**DATABASES, "app": {**DATABASES["app"], **WHERE}}
    return with_campaigns(campaigns, "weekly", databases=databases)


def function_named(template: Template, function: str) -> dict[str, Any]:
    return template.one("Lambda::Function", FunctionName=function)


def role_of(template: Template, function: str) -> list[dict[str, Any]]:
    role = function_named(template, function)["Role"]["Fn::GetAtt"][0]
    (policy,) = template.body["Resources"][role]["Properties"]["Policies"]
    statements: list[dict[str, Any]] = policy["PolicyDocument"]["Statement"]
    return statements


def test_a_schedule_sends_its_campaign_and_the_time_to_the_collect_queue(weekly: Template) -> None:
    (schedule,) = weekly.all("Scheduler::Schedule")
    assert (schedule["Name"], schedule["GroupName"]) == ("weekly", "mailroom-dev-campaigns")
    assert schedule["ScheduleExpression"] == "cron(0 13 ? * WED *)"
    assert schedule["ScheduleExpressionTimezone"] == "Europe/Berlin"
    assert schedule["FlexibleTimeWindow"] == {"Mode": "OFF"}
    target = schedule["Target"]
    assert json.loads(target["Input"]) == {
        "campaign": "weekly",
        "scheduled_at": "<aws.scheduler.scheduled-time>",
    }
    queues = [target["Arn"], target["DeadLetterConfig"]["Arn"]]
    resources = weekly.body["Resources"]
    assert [resources[each["Fn::GetAtt"][0]]["Properties"]["QueueName"] for each in queues] == [
        *("mailroom-dev-collect", "mailroom-dev-collect-dlq"),
    ]
    assert target["RetryPolicy"] == {"MaximumEventAgeInSeconds": 3_600}


def test_a_schedule_is_created_after_its_schedule_group(weekly: Template) -> None:
    (schedule,) = (
        each for each in weekly.body["Resources"].values() if each["Type"] == "AWS::Scheduler::Schedule"
    )
    (group,) = schedule["DependsOn"]
    assert weekly.body["Resources"][group]["Properties"]["Name"] == "mailroom-dev-campaigns"


def test_the_role_of_the_schedules_may_only_send_to_their_two_queues(weekly: Template) -> None:
    (role,) = (each for each in weekly.all("IAM::Role") if "scheduler" in str(each))
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    conditions = trust["Condition"]["StringEquals"]
    group = f"arn:aws:scheduler:{ACCOUNT}:schedule-group/mailroom-dev-campaigns"
    assert text_of(conditions["aws:SourceArn"]) == group
    assert text_of(conditions["aws:SourceAccount"]) == "111122223333"
    assert allowed(role).keys() == {"sqs:SendMessage"}
    assert len(allowed(role)["sqs:SendMessage"]) == 2


def test_the_environment_of_collect_contains_its_queues_its_lease_and_the_databases(weekly: Template) -> None:
    given = weekly.environment(COLLECT)
    assert given["LEASE_SECONDS"] == "180"
    assert "Audience" in given["AUDIENCE_QUEUE_URL"]
    assert msgspec.json.decode(given["DATABASES"], type=dict[str, DatabaseSettings]) == {
        "app": DatabaseSettings(
            secret_arn="arn:aws:secretsmanager:eu-central-1:111122223333:secret:app-AbCdEf",
            connect_seconds=5,
            statement_seconds=45,
        )
    }


def test_the_environments_of_collect_and_compose_contain_a_databases_address_from_the_settings(
    with_code: Template,
) -> None:
    for function in (COLLECT, COMPOSE):
        told = msgspec.convert(
            json.loads(with_code.environment(function)["DATABASES"]), dict[str, DatabaseSettings]
        )
        assert {name: getattr(told["app"], name) for name in WHERE} == WHERE


def test_collect_may_read_only_the_resources_of_the_enabled_campaigns(whole: Templates) -> None:
    may = whole["campaigns"].policy(COLLECT)
    assert may["s3:GetObject"] == {
        "arn:aws:s3:::people-dev/coupons.csv",
        "arn:aws:s3:::people/all/of-them.jsonl",
    }
    secrets = "arn:aws:secretsmanager:eu-central-1:111122223333:secret"
    assert may["secretsmanager:GetSecretValue"] == either(f"{secrets}:app-AbCdEf", f"{secrets}:shop-AbCdEf")
    own, audience = sorted(may["sqs:SendMessage"], reverse=True)
    assert own == f"arn:aws:sqs:{ACCOUNT}:mailroom-dev-collect"
    assert audience.startswith("<AudienceQueue")
    (runs,) = may["dynamodb:UpdateItem"]
    assert "Runs" in runs
    # A write that fails its condition brings the item back. Read are the day's budget, and of a start
    # whether its run was stopped.
    assert may["dynamodb:GetItem"] == {f"arn:aws:dynamodb:{ACCOUNT}:table/mailroom-dev-budgets", runs}
    assert may["dynamodb:Query"] == {f"arn:aws:dynamodb:{ACCOUNT}:table/mailroom-dev-search"}
    assert "dynamodb:PutItem" not in may


def test_compose_reaches_a_database_only_for_a_campaigns_own_code(
    weekly: Template, with_code: Template
) -> None:
    assert "DATABASES" not in weekly.environment(COMPOSE)
    assert json.loads(with_code.environment(COMPOSE)["DATABASES"]).keys() == {"app", "shop"}
    assert json.loads(with_code.environment(COLLECT)["DATABASES"]).keys() == {"app"}
    assert len(with_code.policy(COMPOSE)["secretsmanager:GetSecretValue"]) == 2 * 2
    assert len(with_code.policy(COLLECT)["secretsmanager:GetSecretValue"]) == 2


def test_the_permission_to_read_a_database_secret_covers_its_whole_and_its_partial_arn() -> None:
    names = {"app": "mailroom-app", "reader": "prod/app-reader", "whole": "app-AbCdEf"}
    arns = {
        database: f"arn:aws:secretsmanager:eu-central-1:111122223333:secret:{name}"
        for database, name in names.items()
    }
    databases = {database: {"secret_arn": arn} for database, arn in arns.items()}
    (grant,) = read_secrets(dev_with("databases", databases), [*arns])
    assert {*grant.resources} == either(*arns.values())


def either(*arns: str) -> set[str]:
    """Return each ARN without and with the suffix that Secrets Manager adds."""
    return {*arns, *(f"{arn}-??????" for arn in arns)}


def test_a_campaigns_functions_are_in_a_vpc_if_the_stage_has_one(
    weekly: Template, everything: Templates
) -> None:
    for name in (COLLECT, COMPOSE):
        assert "VpcConfig" not in function_named(weekly, name)
        assert function_named(everything["campaigns"], name)["VpcConfig"] == {
            "SubnetIds": NETWORK["subnet_ids"],
            "SecurityGroupIds": NETWORK["security_group_ids"],
        }


@pytest.mark.parametrize("name", [COLLECT, COMPOSE])
def test_only_lambda_may_create_the_network_interfaces_of_a_function_in_a_vpc(
    weekly: Template, everything: Templates, name: str
) -> None:
    about = [
        each
        for each in role_of(everything["campaigns"], name)
        if "ec2:CreateNetworkInterface" in each["Action"]
    ]
    may, may_not = sorted(about, key=lambda each: each["Effect"])
    assert (may["Effect"], may_not["Effect"]) == ("Allow", "Deny")
    assert set(may_not["Action"]) == INTERFACES
    assert set(may["Action"]) == INTERFACES
    own = may_not["Condition"]["ArnEquals"]["lambda:SourceFunctionArn"]
    assert text_of(own) == f"arn:aws:lambda:{ACCOUNT}:function:{name}"
    assert "Condition" not in may
    assert not [each for each in role_of(weekly, name) if "ec2" in str(each["Action"])]


def test_the_functions_can_read_the_campaign_definitions_that_synth_writes(tmp_path: Path) -> None:
    campaigns = enabled(of_each_kind(tmp_path), *AUDIENCES)
    file = tmp_path / DEFINITIONS
    file.write_bytes(msgspec.json.encode({each.name: each.definition() for each in campaigns}))
    read = definition.read(file)
    assert {name: type(each.audience) for name, each in read.items()} == {
        "postgresql": Postgresql,
        "csv": File,
        "jsonl": File,
        "module": Module,
    }
    weekly = read["postgresql"]
    assert (weekly.name, weekly.channel, weekly.topic, weekly.lane) == (
        *("postgresql", "mail", "followers", "bulk"),
    )
    assert weekly.attributes == {"template": "default"}
    assert (weekly.page_size, weekly.recipients_per_message, weekly.max_pages) == (1000, 50, 100_000)
    assert weekly.module is None
    assert weekly.audience == Postgresql(
        "app", WEEKLY["audience"]["query"], WEEKLY["audience"]["key"], ("email",)
    )
    assert read["csv"].audience == File("s3://people-dev/coupons.csv", "customer")
    assert read["csv"].module == "campaigns/csv/campaign.py"


def test_a_stages_override_replaces_the_value_in_the_campaigns_file(tmp_path: Path) -> None:
    overrides = {"weekly": {"page_size": 50, "audience": {"columns": ["email", "name"]}}}
    (weekly,) = enabled(put_campaign(tmp_path), "weekly", campaigns__overrides=overrides)
    told = weekly.definition()
    assert (told.page_size, told.recipients_per_message) == (50, 50)
    assert told.audience.columns == ("email", "name")
