"""Mailroom in somebody's CDK app: two stages, beside a stack of theirs."""

import json
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, Stack, Tags
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs

from mailroom_stacks.assemblies import NO_BUNDLES
from mailroom_stacks.embedded import Mailroom
from tests.support.stacks.names import physical_names
from tests.support.stacks.refusals import STAGES
from tests.support.stacks.templates import Templates

Bodies = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def synthesized(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Bodies]:
    """The templates by stack, of each stage and of the app's own ("")."""
    folder = tmp_path_factory.mktemp("embedded")
    app = App(outdir=str(folder), context=dict(NO_BUNDLES), analytics_reporting=False)
    prod = Mailroom(app, "Prod", settings=STAGES["prod"])
    Mailroom(app, "Shop", settings=STAGES["dev"], stage="dev")
    orders = Stack(app, "orders")
    sqs.Queue(orders, "Plain")  # which cdk-nag would refuse
    function = lambda_.Function(
        orders,
        "Function",
        runtime=lambda_.Runtime.PYTHON_3_14,
        handler="index.handler",
        code=lambda_.Code.from_inline("handler = print"),
        environment={
            "API_URL": prod.api_url,
            "MAILBOX": prod.mailbox.name,
            "ALARMS": prod.alarm_topic_arn,
            "ALARMS_ENDED": prod.alarm_ended_topic_arn,
        },
    )
    prod.mailbox.grant_put(function)
    prod.payloads.grant_put(function)
    assert prod.events is None
    Tags.of(orders).add("team", "shop")
    app.synth()
    found: dict[str, Bodies] = {}
    for name, place in {"": "", "prod": "assembly-Prod", "dev": "assembly-Shop"}.items():
        artifacts = json.loads((folder / place / "manifest.json").read_text())["artifacts"].values()
        stacks = (each["properties"] for each in artifacts if each["type"] == "aws:cloudformation:stack")
        of = {each.get("stackName", "orders"): each["templateFile"] for each in stacks}
        found[name] = {stack: json.loads(Path(folder, place, file).read_text()) for stack, file in of.items()}
    return found


@pytest.mark.parametrize("name", ["dev", "prod"])
def test_its_stacks_are_those_of_an_app_of_our_own(
    synthesized: dict[str, Bodies], name: str, request: pytest.FixtureRequest
) -> None:
    ours: Templates = request.getfixturevalue(name)
    assert {*synthesized[name]} == {f"mailroom-{name}-{stack}" for stack in ours.stacks}
    for stack, template in ours.stacks.items():
        assert synthesized[name][f"mailroom-{name}-{stack}"] == template.body


def test_the_stacks_beside_it_get_neither_its_tags_nor_its_checks(synthesized: dict[str, Bodies]) -> None:
    resources = synthesized[""]["orders"]["Resources"].values()
    (queue,) = (each for each in resources if each["Type"] == "AWS::SQS::Queue")
    assert queue["Properties"]["Tags"] == [{"Key": "team", "Value": "shop"}]


def test_a_function_may_put_messages_and_payloads_by_their_names(synthesized: dict[str, Bodies]) -> None:
    resources = synthesized[""]["orders"]["Resources"].values()
    (policy,) = (each for each in resources if each["Type"] == "AWS::IAM::Policy")
    granted = policy["Properties"]["PolicyDocument"]["Statement"]
    assert [each["Action"] for each in granted] == ["dynamodb:PutItem", "s3:PutObject"]
    assert ":table/mailroom-prod-mailbox" in json.dumps(granted[0]["Resource"])
    assert ":s3:::mailroom-prod-payloads-" in json.dumps(granted[1]["Resource"])
    assert "Fn::ImportValue" not in json.dumps(synthesized[""]["orders"])


def test_what_others_are_told_is_in_parameters_of_the_stage(synthesized: dict[str, Bodies]) -> None:
    resources = (each for body in synthesized["prod"].values() for each in body["Resources"].values())
    parameters = [each["Properties"]["Name"] for each in resources if each["Type"] == "AWS::SSM::Parameter"]
    short = ("alarm-ended-topic", "alarm-topic", "api-url", "ledger-table", "mailbox-table", "payload-bucket")
    assert sorted(parameters) == [f"/mailroom-prod/{each}" for each in short]
    (function,) = (
        each
        for each in synthesized[""]["orders"]["Resources"].values()
        if each["Type"] == "AWS::Lambda::Function"
    )
    told = function["Properties"]["Environment"]["Variables"]
    assert told["API_URL"] == "{{resolve:ssm:/mailroom-prod/api-url}}"
    assert ":mailroom-prod-alarms-ended" in json.dumps(told["ALARMS_ENDED"])


def test_two_stages_of_two_teams_share_no_name_in_an_account(synthesized: dict[str, Bodies]) -> None:
    dev, prod = ({*physical_names(synthesized[stage].values())} for stage in ("dev", "prod"))
    assert len(dev) > 150
    assert sorted(dev & prod) == []
