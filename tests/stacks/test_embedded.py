"""Mailroom in somebody's CDK app: two stages, beside stacks of theirs."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, Stack, Tags
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs

from mailroom_stacks.app.cache import NO_BUNDLES
from mailroom_stacks.app.embedded import Mailroom
from tests.support.docs_pages import Page
from tests.support.stacks.alarm import alarms
from tests.support.stacks.dashboard import arns, metrics_of_graph
from tests.support.stacks.names import physical_names
from tests.support.stacks.refusals import STAGES
from tests.support.stacks.templates import Templates, text_of

Bodies = dict[str, dict[str, Any]]
EXAMPLE, COMPOSITE = (block.text for block in Page("docs/how-to/dashboards.md").blocks("python"))


@pytest.fixture(scope="module")
def embedded_bodies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Bodies]:
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
    exec(EXAMPLE + COMPOSITE, {"app": app, "prod": prod, "Stack": Stack})
    app.synth()
    found: dict[str, Bodies] = {}
    for name, place in {"": "", "prod": "assembly-Prod", "dev": "assembly-Shop"}.items():
        artifacts = json.loads((folder / place / "manifest.json").read_text())["artifacts"]
        of = {
            each["properties"].get("stackName", artifact): each["properties"]["templateFile"]
            for artifact, each in artifacts.items()
            if each["type"] == "aws:cloudformation:stack"
        }
        found[name] = {stack: json.loads(Path(folder, place, file).read_text()) for stack, file in of.items()}
    return found


@pytest.mark.parametrize("name", ["dev", "prod"])
def test_the_stacks_of_an_embedded_stage_equal_those_of_mailrooms_own_app(
    embedded_bodies: dict[str, Bodies], name: str, request: pytest.FixtureRequest
) -> None:
    ours: Templates = request.getfixturevalue(name)
    assert {*embedded_bodies[name]} == {f"mailroom-{name}-{stack}" for stack in ours.stacks}
    for stack, template in ours.stacks.items():
        assert embedded_bodies[name][f"mailroom-{name}-{stack}"] == template.body


def test_the_apps_other_stacks_get_neither_the_stages_tags_nor_its_checks(
    embedded_bodies: dict[str, Bodies],
) -> None:
    resources = embedded_bodies[""]["orders"]["Resources"].values()
    (queue,) = (each for each in resources if each["Type"] == "AWS::SQS::Queue")
    assert queue["Properties"]["Tags"] == [{"Key": "team", "Value": "shop"}]


def test_a_function_of_another_stack_may_put_messages_and_payloads_after_grant_put(
    embedded_bodies: dict[str, Bodies],
) -> None:
    resources = embedded_bodies[""]["orders"]["Resources"].values()
    (policy,) = (each for each in resources if each["Type"] == "AWS::IAM::Policy")
    granted = policy["Properties"]["PolicyDocument"]["Statement"]
    assert [each["Action"] for each in granted] == ["dynamodb:PutItem", "s3:PutObject"]
    assert ":table/mailroom-prod-mailbox" in json.dumps(granted[0]["Resource"])
    assert ":s3:::mailroom-prod-payloads-" in json.dumps(granted[1]["Resource"])


def test_the_example_in_the_docs_makes_a_dashboard_of_a_stage_in_at_most_ten_lines(
    embedded_bodies: dict[str, Bodies], prod: Templates
) -> None:
    assert len([line for line in EXAMPLE.splitlines() if line]) <= 10
    (board,) = (
        each["Properties"]
        for each in embedded_bodies[""]["wall"]["Resources"].values()
        if each["Type"] == "AWS::CloudWatch::Dashboard"
    )
    letters, codes, accepted = json.loads(text_of(board["DashboardBody"]))["widgets"]
    dead = {each.name for each in alarms(prod) if each.name.endswith("-dlq-not-empty")}
    assert {*arns(letters)} == dead
    assert {(name, dict(pairs)["stage"]) for _, name, pairs in metrics_of_graph(codes)} == {
        ("PutToAccepted", "prod")
    }
    assert {(name, dict(pairs)["stage"]) for _, name, pairs in metrics_of_graph(accepted)} == {
        ("Sent", "prod")
    }
    assert 'MetricName=\\"Failed\\"' in json.dumps(accepted)


def test_the_composite_alarm_of_the_docs_covers_every_dead_letter_queue_of_the_stage(
    embedded_bodies: dict[str, Bodies], prod: Templates
) -> None:
    (rule,) = (
        text_of(each["Properties"]["AlarmRule"])
        for each in embedded_bodies[""]["wall"]["Resources"].values()
        if each["Type"] == "AWS::CloudWatch::CompositeAlarm"
    )
    dead = {each.name for each in alarms(prod) if each.name.endswith("-dlq-not-empty")}
    assert {*re.findall(r"mailroom-prod-[a-z-]+", rule)} == dead


def test_stacks_beside_the_stage_import_none_of_its_exports(embedded_bodies: dict[str, Bodies]) -> None:
    assert "Fn::ImportValue" not in json.dumps(embedded_bodies[""])


def test_ssm_parameters_of_a_stage_hold_the_names_that_other_stacks_need(
    embedded_bodies: dict[str, Bodies],
) -> None:
    resources = (each for body in embedded_bodies["prod"].values() for each in body["Resources"].values())
    parameters = [each["Properties"]["Name"] for each in resources if each["Type"] == "AWS::SSM::Parameter"]
    short = ("alarm-ended-topic", "alarm-topic", "api-url", "ledger-table", "mailbox-table", "payload-bucket")
    assert sorted(parameters) == [f"/mailroom-prod/{each}" for each in short]
    (function,) = (
        each
        for each in embedded_bodies[""]["orders"]["Resources"].values()
        if each["Type"] == "AWS::Lambda::Function"
    )
    told = function["Properties"]["Environment"]["Variables"]
    assert told["API_URL"] == "{{resolve:ssm:/mailroom-prod/api-url}}"
    assert ":mailroom-prod-alarms-ended" in json.dumps(told["ALARMS_ENDED"])


def test_the_resources_of_two_stages_in_one_account_do_not_share_a_name(
    embedded_bodies: dict[str, Bodies],
) -> None:
    dev, prod = ({*physical_names(embedded_bodies[stage].values())} for stage in ("dev", "prod"))
    assert len(dev) > 100
    assert sorted(dev & prod) == []
