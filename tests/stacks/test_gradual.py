"""Gradual deployment: CodeDeploy moves each sender to its new version, and back if an alarm rings."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.stacks.templates import Template, Templates, allowed, text

SENDERS = {
    "channels": {"mail": "send-mail", "mail-bulk": "send-mail-bulk", "sms": "send-sms", "push": "send-push"},
    "fax": {"fax": "send-fax"},
    "webhook": {"webhook": "send-webhook"},
}
"""Senders by their queues, by their stacks."""
STEPS, STEP_SECONDS = 10, 180
"""The shift of CodeDeployDefault.LambdaLinear10PercentEvery3Minutes."""


def senders() -> list[tuple[str, str, str]]:
    return [(stack, queue, name) for stack, named in SENDERS.items() for queue, name in named.items()]


every_sender = pytest.mark.parametrize(("stack", "queue", "function"), senders())


def resource(template: Template, kind: str, **properties: object) -> tuple[str, dict[str, Any]]:
    """The logical id of the one resource that has these properties, and the resource."""
    ((name, match),) = (
        (name, each)
        for name, each in template.body["Resources"].items()
        if each["Type"] == f"AWS::{kind}" and properties.items() <= each["Properties"].items()
    )
    return name, match


def group_of(template: Template, function: str) -> dict[str, Any]:
    return template.one("CodeDeploy::DeploymentGroup", DeploymentGroupName=f"mailroom-dev-{function}")


@every_sender
def test_a_senders_mapping_invokes_the_alias_of_its_newest_version(
    everything: Templates, stack: str, queue: str, function: str
) -> None:
    template = everything[stack]
    name, _ = resource(template, "Lambda::Function", FunctionName=f"mailroom-dev-{function}")
    alias, properties = resource(template, "Lambda::Alias", FunctionName={"Ref": name})
    version = template.body["Resources"][properties["Properties"]["FunctionVersion"]["Fn::GetAtt"][0]]
    assert properties["Properties"]["Name"] == "live"
    assert version["Properties"]["FunctionName"] == {"Ref": name}
    mapping = template.mapping(f"mailroom-dev-{function}")
    assert mapping["FunctionName"] == {
        "Fn::Join": ["", [{"Fn::Select": [6, {"Fn::Split": [":", {"Ref": alias}]}]}, ":live"]]
    }


@every_sender
def test_a_mapping_to_an_alias_has_otherwise_the_same_properties(
    everything: Templates, every_function: Templates, stack: str, queue: str, function: str
) -> None:
    """Its concurrency among it, and its logical id: turning the setting on replaces no mapping."""
    stages = (everything, every_function)
    ways = [templates[stack].mapping(f"mailroom-dev-{function}") for templates in stages]
    first, second = ({**each, "FunctionName": ""} for each in ways)
    assert first == second
    ids = [
        {
            name
            for name, each in templates[stack].body["Resources"].items()
            if each["Type"].endswith("Mapping")
        }
        for templates in stages
    ]
    assert ids[0] == ids[1]


@every_sender
def test_codedeploy_shifts_a_tenth_every_three_minutes_and_rolls_back_if_an_alarm_rings(
    everything: Templates, stack: str, queue: str, function: str
) -> None:
    template = everything[stack]
    group = group_of(template, function)
    assert group["DeploymentConfigName"] == "CodeDeployDefault.LambdaLinear10PercentEvery3Minutes"
    names = [f"mailroom-dev-{function}-errors", f"mailroom-dev-{queue}-dlq-not-empty"]
    assert group["AlarmConfiguration"] == {"Enabled": True, "Alarms": [{"Name": each} for each in names]}
    for each in names:
        assert template.one("CloudWatch::Alarm", AlarmName=each)
    assert {*group["AutoRollbackConfiguration"]["Events"]} == {
        "DEPLOYMENT_FAILURE",
        "DEPLOYMENT_STOP_ON_ALARM",
    }
    name, _ = resource(template, "Lambda::Function", FunctionName=f"mailroom-dev-{function}")
    _, alias = resource(template, "Lambda::Alias", FunctionName={"Ref": name})
    update = alias["UpdatePolicy"]["CodeDeployLambdaAliasUpdate"]
    shift, _ = resource(template, "CodeDeploy::DeploymentGroup", **group)
    assert update == {"ApplicationName": group["ApplicationName"], "DeploymentGroupName": {"Ref": shift}}


@every_sender
def test_the_errors_alarm_rings_before_a_shift_is_over(
    everything: Templates, stack: str, queue: str, function: str
) -> None:
    alarm = everything[stack].one("CloudWatch::Alarm", AlarmName=f"mailroom-dev-{function}-errors")
    # The first error may come late in a period; the metric may be a minute late.
    rings = (alarm["DatapointsToAlarm"] + 1) * alarm["Period"] + 60
    assert rings < (STEPS - 1) * STEP_SECONDS


@every_sender
def test_codedeploy_may_only_move_the_senders_own_alias_and_read_alarms(
    everything: Templates, stack: str, queue: str, function: str
) -> None:
    template = everything[stack]
    group = group_of(template, function)
    role = template.body["Resources"][group["ServiceRoleArn"]["Fn::GetAtt"][0]]["Properties"]
    name, _ = resource(template, "Lambda::Function", FunctionName=f"mailroom-dev-{function}")
    own = {f"<{name}.Arn>", f"<{name}.Arn>:live"}
    assert allowed(role) == {
        "lambda:GetAlias": own,
        "lambda:UpdateAlias": own,
        "lambda:GetProvisionedConcurrencyConfig": own,
        "cloudwatch:DescribeAlarms": {"*"},
    }
    assert "ManagedPolicyArns" not in role
    (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert text(statement["Principal"]["Service"]) == "codedeploy.amazonaws.com"


def test_gradual_deployments_are_used_for_senders_only(everything: Templates) -> None:
    aliases = {name: len(template.all("Lambda::Alias")) for name, template in everything.stacks.items()}
    assert {name: count for name, count in aliases.items() if count} == {
        stack: len(named) for stack, named in SENDERS.items()
    }


def test_a_stage_without_gradual_deployments_has_no_alias_or_version(every_function: Templates) -> None:
    kinds = ("Lambda::Alias", "Lambda::Version", "CodeDeploy::Application", "CodeDeploy::DeploymentGroup")
    assert not [kind for each in every_function.stacks.values() for kind in kinds if each.all(kind)]


def test_a_stage_with_only_the_alarms_of_queues_rolls_back_at_the_dead_letter_alarm(lean: Templates) -> None:
    template = lean["webhook"]
    alarms = group_of(template, "send-webhook")["AlarmConfiguration"]["Alarms"]
    assert alarms == [{"Name": "mailroom-dev-webhook-dlq-not-empty"}]


def test_the_stacks_of_senders_are_independent_so_that_they_shift_in_parallel(everything: Templates) -> None:
    artifacts = json.loads((everything.folder / "manifest.json").read_text())["artifacts"]
    names = {f"mailroom-dev-{stack}" for stack in SENDERS}
    for name in names:
        needed, found = {name}, set[str]()
        while needed:
            found |= needed
            needed = {each for other in needed for each in artifacts[other].get("dependencies", ())} - found
        assert found & names == {name}


def test_the_emulator_which_has_no_codedeploy_gets_no_alias(stage: Callable[[str], Templates]) -> None:
    stacks = stage("local").stacks
    assert stacks["webhook"].all("Lambda::EventSourceMapping")
    assert not any(each.all("Lambda::Alias") for each in stacks.values())
