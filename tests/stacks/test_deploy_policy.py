"""The execution policies allow each action of a deployment, and no others."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from mailroom_ops import cli
from mailroom_stacks.deploy_policy.actions import (
    BEYOND,
    OPTIONAL,
    exists,
    handler_actions,
    needed_actions,
    resource_kinds,
)
from mailroom_stacks.deploy_policy.document import LIMIT, documents, size
from mailroom_stacks.deploy_policy.policies import place_of, policies_of, qualifier_of
from mailroom_stacks.deploy_policy.scopes import ON_EVERYTHING, Place, UnscopedError, statements
from mailroom_stacks.settings.load import load
from tests.support.stacks.refusals import STAGES, dev_with
from tests.support.stacks.templates import Template, Templates, text_of
from tests.support.stacks.variants import AWS

QUALIFIER = "hnb659fds"
SUBJECT = "repo:acme/mailroom:ref:refs/heads/main"
ACCOUNT, REGION = "111122223333", "eu-central-1"
NAMES = {
    "ApiGatewayV2::Api": ("ApiId", "apigateway:{region}::/apis/a1b2c3"),
    "ApiGatewayV2::Integration": ("", "apigateway:{region}::/apis/a1b2c3/integrations/d4"),
    "ApiGatewayV2::Route": ("", "apigateway:{region}::/apis/a1b2c3/routes/d4"),
    "ApiGatewayV2::Stage": ("", "apigateway:{region}::/apis/a1b2c3/stages/$default"),
    "CloudWatch::Alarm": ("AlarmName", "cloudwatch:{region}:{account}:alarm:{name}"),
    "CloudWatch::Dashboard": ("DashboardName", "cloudwatch::{account}:dashboard/{name}"),
    "DynamoDB::Table": ("TableName", "dynamodb:{region}:{account}:table/{name}"),
    "KMS::Key": ("", "kms:{region}:{account}:key/11111111-2222-3333-4444-555555555555"),
    "Lambda::EventSourceMapping": ("", "lambda:{region}:{account}:event-source-mapping:11111111"),
    "Lambda::Function": ("FunctionName", "lambda:{region}:{account}:function:{name}"),
    "Logs::LogGroup": ("LogGroupName", "logs:{region}:{account}:log-group:{name}"),
    "S3::Bucket": ("BucketName", "s3:::{name}"),
    "Scheduler::ScheduleGroup": ("Name", "scheduler:{region}:{account}:schedule-group/{name}"),
    "SecretsManager::Secret": ("Name", "secretsmanager:{region}:{account}:secret:{name}-a1B2c3"),
    "SES::ConfigurationSet": ("Name", "ses:{region}:{account}:configuration-set/{name}"),
    "SMSVOICE::ConfigurationSet": (
        "ConfigurationSetName",
        "sms-voice:{region}:{account}:configuration-set/{name}",
    ),
    "SNS::Topic": ("TopicName", "sns:{region}:{account}:{name}"),
    "SSM::Parameter": ("Name", "ssm:{region}:{account}:parameter{name}"),
    "SQS::Queue": ("QueueName", "sqs:{region}:{account}:{name}"),
}
"""Of the types that have ARNs of their own: the property that names a resource, and its ARN, as each
service's page of https://docs.aws.amazon.com/service-authorization/latest/reference/ has it."""
GENERATED = {
    "IAM::Role": "iam::{account}:role/{name}",
    "Events::Rule": "events:{region}:{account}:rule/{name}",
}
"""CloudFormation names these: after the stack, the logical id and a random ending."""


class Deployment:
    """The templates of one deployment, and its policies."""

    def __init__(self, stacks: Mapping[str, Template], place: Place) -> None:
        self.bodies = {name: each.body for name, each in stacks.items() if name != "deploy"}
        self.place = place
        self.needed = needed_actions(self.bodies.values())
        self.policies = documents(statements(self.needed, place))

    def statements(self, effect: str = "Allow") -> Iterator[Mapping[str, Any]]:
        """Return the statements that allow, or those that deny."""
        each = (statement for policy in self.policies for statement in policy["Statement"])
        return (statement for statement in each if statement["Effect"] == effect)

    def allows(self, action: str, arn: str) -> bool:
        """Whether any statement allows it, its conditions aside."""
        return any(
            action in each["Action"] and any(fnmatchcase(arn, pattern) for pattern in each["Resource"])
            for each in self.statements()
        )

    def resources(self) -> Iterator[tuple[str, str]]:
        """Type and ARN of every resource that has an ARN."""
        for stack, body in self.bodies.items():
            for logical, resource in body["Resources"].items():
                kind = resource["Type"].removeprefix("AWS::")
                if kind in NAMES or kind in GENERATED:
                    yield kind, _arn(kind, logical, resource, stack, self.place.stage)


def _arn(kind: str, logical: str, resource: Mapping[str, Any], stack: str, stage: str) -> str:
    if kind in GENERATED:
        # At most 64 characters, of which 12 are random: https://docs.aws.amazon.com/AWSCloudFormation/latest/
        # TemplateReference/aws-properties-name.html does not say which are kept. Of the stack's name, the
        # first are kept.
        form, name = GENERATED[kind], f"mailroom-{stage}-{stack}"[:24] + f"-{logical[:24]}-1A2B3C4D5E6F"
    else:
        key, form = NAMES[kind]
        name = text_of(resource["Properties"].get(key, ""))
    return "arn:aws:" + form.format(region=REGION, account=ACCOUNT, name=name)


def _target(action: str, arn: str) -> str:
    """Return the resource that the action concerns: a group's deletion deletes its schedules, one by one."""
    if resource_kinds(action) == ("schedule",):
        return arn.replace(":schedule-group/", ":schedule/") + "/any"
    return arn if resource_kinds(action) else "*"


@pytest.fixture(scope="module")
def with_everything(everything: Templates) -> Deployment:
    """Stage dev with all that can be switched on, pinned to a place."""
    settings = dev_with("sms", AWS)
    place = place_of(settings, [each.body for each in everything.stacks.values()], QUALIFIER)
    return Deployment(everything.stacks, place)


@pytest.fixture(scope="module", params=["dev", "prod", "everything"])
def deployment(request: pytest.FixtureRequest, templates_of_stage: Callable[[str], Any]) -> Deployment:
    """The stages of cdk.json, and one with everything."""
    if request.param == "everything":
        whole: Deployment = request.getfixturevalue("with_everything")
        return whole
    return of_stage(request.param, templates_of_stage(request.param))


def of_stage(name: str, templates: Templates) -> Deployment:
    """A stage of cdk.json."""
    bodies = [each.body for stack, each in templates.stacks.items() if stack != "deploy"]
    return Deployment(templates.stacks, place_of(load(STAGES, name), bodies, QUALIFIER))


def test_the_policies_allow_every_action_that_cloudformation_needs_for_each_resource(
    deployment: Deployment,
) -> None:
    checked = 0
    for kind, arn in deployment.resources():
        for action in deployment.needed[f"AWS::{kind}"]:
            if action.split(":")[0] != arn.split(":")[2]:
                continue
            target = _target(action, arn)
            assert deployment.allows(action, target), f"{action} on {target}"
            checked += 1
    assert checked > 1000


def test_the_needed_actions_are_known_for_every_resource_type_of_the_templates(
    deployment: Deployment,
) -> None:
    types = {each["Type"] for body in deployment.bodies.values() for each in body["Resources"].values()}
    assert deployment.needed.keys() == types


def test_the_policies_allow_reading_the_bootstrap_and_passing_the_functions_roles(
    deployment: Deployment,
) -> None:
    """Code out of the bootstrap's bucket, its version, and the functions' roles."""
    assets = f"arn:aws:s3:::cdk-{QUALIFIER}-assets-{ACCOUNT}-{REGION}/0123.zip"
    version = f"arn:aws:ssm:{REGION}:{ACCOUNT}:parameter/cdk-bootstrap/{QUALIFIER}/version"
    own = f"arn:aws:iam::{ACCOUNT}:role/mailroom-{deployment.place.stage}-channels-Role-1A2B"
    assert deployment.allows("s3:GetObject", assets)
    assert deployment.allows("ssm:GetParameters", version)
    assert deployment.allows("iam:PassRole", own)


def test_every_allowed_action_exists_and_has_no_wildcard(deployment: Deployment) -> None:
    actions = [action for each in deployment.statements() for action in each["Action"]]
    assert len(actions) > 200
    assert not [action for action in actions if "*" in action or not exists(action)]


def test_only_a_few_actions_with_a_reason_are_allowed_on_every_resource(deployment: Deployment) -> None:
    on_all = [
        action for each in deployment.statements() if "*" in each["Resource"] for action in each["Action"]
    ]
    assert on_all
    for action in on_all:
        assert any(fnmatchcase(action, pattern) for pattern in ON_EVERYTHING), action
        assert not resource_kinds(action)
    assert all(reason.endswith(".") for reason in ON_EVERYTHING.values())


def test_every_resource_that_a_policy_names_belongs_to_the_stage_or_has_a_generated_id(
    deployment: Deployment,
) -> None:
    stage = deployment.place.stage
    ours = re.compile(rf"[:/]mailroom-{stage}(-|$|/)|cdk-{QUALIFIER}-assets-|cdk-bootstrap/{QUALIFIER}/")
    ids = ("/apis", "/apis/*", "/tags/*", "key/*", "event-source-mapping:*", "role/aws-service-role/*")
    for each in deployment.statements():
        for arn in each["Resource"]:
            assert arn == "*" or ours.search(arn) or arn.endswith(ids), arn


def test_the_policies_do_not_allow_actions_on_named_resources_of_another_stage(
    deployment: Deployment,
) -> None:
    for kind, arn in deployment.resources():
        other = arn.replace(f"mailroom-{deployment.place.stage}", "mailroom-other")
        if other == arn:
            continue
        service = arn.split(":")[2]
        for action in deployment.needed[f"AWS::{kind}"]:
            if action.split(":")[0] == service:
                assert not deployment.allows(action, other) or not resource_kinds(action)


def test_roles_of_the_stage_may_be_passed_only_to_listed_services_such_as_lambda(
    deployment: Deployment,
) -> None:
    (passing,) = (each for each in deployment.statements() if "iam:PassRole" in each["Action"])
    trusted = passing["Condition"]["StringEquals"]["iam:PassedToService"]
    assert "lambda.amazonaws.com" in trusted
    assert passing["Action"] == ["iam:PassRole"]
    assert passing["Resource"] == [f"arn:aws:iam::*:role/mailroom-{deployment.place.stage}-*"]


def test_the_service_linked_role_of_api_gateway_may_be_created(deployment: Deployment) -> None:
    (making,) = (each for each in deployment.statements() if "iam:CreateServiceLinkedRole" in each["Action"])
    assert making["Action"] == ["iam:CreateServiceLinkedRole"]
    assert making["Resource"] == ["arn:aws:iam::*:role/aws-service-role/*"]
    services = making["Condition"]["StringEquals"]["iam:AWSServiceName"]
    assert services == ["ops.apigateway.amazonaws.com"]


def test_the_policies_prevent_attaching_managed_policies_and_changing_the_deployers_roles(
    deployment: Deployment,
) -> None:
    named = {action for each in deployment.statements() for action in each["Action"]}
    assert not {"iam:AttachRolePolicy", "iam:CreateUser", "iam:DeleteRolePermissionsBoundary"} & named
    (denied,) = deployment.statements("Deny")
    assert denied["Action"] == ["iam:*"]
    assert denied["Resource"] == [f"arn:aws:iam::*:role/mailroom-{deployment.place.stage}-deploy*"]


def test_conditions_restrict_the_access_to_keys_and_mappings_which_lack_names(deployment: Deployment) -> None:
    held = {
        action: each.get("Condition", {}) for each in deployment.statements() for action in each["Action"]
    }
    stage = deployment.place.stage
    for action in ("kms:PutKeyPolicy", "kms:ScheduleKeyDeletion", "kms:DisableKey", "kms:UntagResource"):
        assert held[action]["StringEquals"]["aws:ResourceTag/stage"] == [stage]
    assert held["kms:TagResource"]["StringEqualsIfExists"]["aws:RequestTag/stage"] == [stage]
    for verb in ("Create", "Update", "Delete"):
        functions = held[f"lambda:{verb}EventSourceMapping"]["ArnLike"]["lambda:FunctionArn"]
        assert functions == [f"arn:aws:lambda:*:*:function:mailroom-{stage}-*"]


def test_the_actions_that_create_a_key_have_no_tag_condition(deployment: Deployment) -> None:
    """That takes minutes, and CloudFormation reads a key and turns its rotation on at once."""
    held = {
        action: each.get("Condition", {}) for each in deployment.statements() for action in each["Action"]
    }
    for action in ("kms:CreateKey", "kms:DescribeKey", "kms:GetKeyPolicy", "kms:EnableKeyRotation"):
        assert held[action] == {}


def key_with(**tags: str) -> dict[str, Any]:
    """A template of one key."""
    pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
    return {"Resources": {"K": {"Type": "AWS::KMS::Key", "Properties": {"Tags": pairs}}}}


def test_only_the_stages_tags_restrict_the_access_to_keys() -> None:
    keys = [key_with(service="mailroom", stage="dev", team="a"), key_with(service="mailroom", stage="dev")]
    place = place_of(load(STAGES, "dev"), keys, QUALIFIER)
    assert place.key_tags == (("service", "mailroom"), ("stage", "dev"))
    same = place_of(load(STAGES, "dev"), [key_with(service="mailroom", stage="dev", team="b")], QUALIFIER)
    assert same == place


@pytest.mark.parametrize("tags", [{}, {"service": "mailroom", "team": "a"}])
def test_the_policies_are_refused_if_a_key_lacks_the_tag_stage(tags: dict[str, str]) -> None:
    template = key_with(**tags)
    place = place_of(load(STAGES, "dev"), [template], QUALIFIER)
    with pytest.raises(UnscopedError, match=r"have no tag `stage`; add it to deployment.tags"):
        statements(needed_actions([template]), place)


@pytest.mark.parametrize(
    ("region", "partition"),
    [(REGION, "aws"), ("cn-north-1", "aws-cn"), ("us-gov-west-1", "aws-us-gov"), (None, "aws")],
)
def test_the_arns_of_the_policies_have_the_partition_of_the_stages_region(
    region: str | None, partition: str
) -> None:
    place = place_of(dev_with("deployment", {"region": region}), [], QUALIFIER)
    for each in statements({"AWS::SQS::Queue": ["sqs:CreateQueue"]}, place):
        assert all(arn.startswith(f"arn:{partition}:") for arn in each.resources)


def test_the_policies_do_not_allow_reading_items_queue_messages_or_payloads(deployment: Deployment) -> None:
    """CloudFormation reads a secret to change it; messages it never needs."""
    named = {action for each in deployment.statements() for action in each["Action"]}
    assert not {"dynamodb:GetItem", "dynamodb:Query", "dynamodb:Scan", "sqs:ReceiveMessage"} & named
    stage = deployment.place.stage
    assert not deployment.allows(
        "s3:GetObject", f"arn:aws:s3:::mailroom-{stage}-payloads-{ACCOUNT}-{REGION}/x"
    )


def test_the_number_and_the_size_of_the_policies_are_within_the_limits_of_iam(deployment: Deployment) -> None:
    assert 1 < len(deployment.policies) <= 10
    assert all(size(policy) <= LIMIT for policy in deployment.policies)


def test_a_pinned_account_and_region_restrict_the_arns_of_the_policies() -> None:
    place = Place("qa", account=ACCOUNT, region=REGION, configuration_sets=("mailroom-qa",))
    (allowed, *_) = statements({"AWS::SQS::Queue": ["sqs:CreateQueue"]}, place)
    assert allowed.resources == (f"arn:aws:sqs:{REGION}:{ACCOUNT}:mailroom-qa-*",)


def test_a_role_cannot_be_made_or_changed_without_the_boundary_that_the_settings_name() -> None:
    place = Place("qa", boundary="mailroom-boundary")
    needed = {"AWS::IAM::Role": ["iam:CreateRole", "iam:PutRolePolicy", "iam:GetRole"]}
    held = {
        action: each.conditions
        for each in statements(needed, place)
        for action in each.actions
        if not each.denied
    }
    bound = (("ArnLike", "iam:PermissionsBoundary", ("arn:aws:iam::*:policy/mailroom-boundary",)),)
    assert held["iam:CreateRole"] == held["iam:PutRolePolicy"] == bound
    assert held["iam:GetRole"] == ()


def test_an_action_is_refused_if_a_rule_does_not_restrict_its_resources() -> None:
    with pytest.raises(UnscopedError, match=r"^ec2:CreateVpc: no rule restricts its resources \("):
        statements({"AWS::EC2::VPC": ["ec2:CreateVpc"]}, Place("qa"))


def test_a_property_of_a_resource_adds_the_actions_that_it_needs() -> None:
    def actions(properties: dict[str, object]) -> set[str]:
        template = {"Resources": {"F": {"Type": "AWS::Lambda::Function", "Properties": properties}}}
        return needed_actions([template])["AWS::Lambda::Function"]

    assert "ec2:DescribeSubnets" not in actions({"Runtime": "python3.14"})
    assert "ec2:DescribeSubnets" in actions({"VpcConfig": {"SubnetIds": ["subnet-1"]}})


def test_a_nested_property_of_a_resource_adds_the_actions_that_it_needs() -> None:
    def passes(target: dict[str, str]) -> bool:
        rule = {"Type": "AWS::Events::Rule", "Properties": {"Targets": [target]}}
        return "iam:PassRole" in needed_actions([{"Resources": {"R": rule}}])["AWS::Events::Rule"]

    assert passes({"Arn": "a", "RoleArn": "r"})
    assert not passes({"Arn": "a"})


@pytest.mark.parametrize("row", OPTIONAL, ids="-".join)
def test_each_exclusion_matches_an_action_of_the_cloudformation_handlers(row: tuple[str, ...]) -> None:
    resource_type, _, *patterns = row
    named = handler_actions(f"AWS::{resource_type}")
    for pattern in patterns:
        assert any(fnmatchcase(action, pattern) for action in named), pattern


def test_each_additional_action_exists_and_is_missing_in_the_cloudformation_handlers() -> None:
    for (resource_type, _), actions in BEYOND.items():
        assert all(exists(action) for action in actions)
        assert not {*actions} & handler_actions(resource_type)


def run_command(*options: str) -> Result:
    return CliRunner().invoke(cli.app, ["policy", *options])


def test_mailroom_policy_replaces_the_policy_files_of_a_stage(
    tmp_path: Path, prod: Templates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mailroom_ops.deploying.policy.DOT_LOCAL", tmp_path)
    folder = tmp_path / "policy" / "prod"
    folder.mkdir(parents=True)
    (folder / "execution-9.json").write_text("{}")
    assert run_command("--stage", "prod").exit_code == 0
    written = sorted(folder.iterdir())
    assert [file.name for file in written] == [f"execution-{n}.json" for n in range(1, len(written) + 1)]
    wanted = of_stage("prod", prod)
    assert [json.loads(file.read_text()) for file in written] == wanted.policies


def test_the_policies_are_for_the_bootstrap_that_deploys_the_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mailroom_stacks.deploy_policy.policies.qualifier_of", lambda *_: "maildev")
    made = json.dumps(policies_of("dev"))
    assert "cdk-maildev-assets-" in made
    assert QUALIFIER not in made
    assert "cdk-other-assets-" in json.dumps(policies_of("dev", "other"))


def test_a_stages_own_bootstrap_qualifier_precedes_that_of_the_context_and_the_default() -> None:
    own = dev_with("deploy", {"provider": "github", "subjects": [SUBJECT], "qualifier": "maildev"})
    context = {"@aws-cdk/core:bootstrapQualifier": "ours"}
    assert qualifier_of(own, context) == "maildev"
    assert qualifier_of(load(STAGES, "dev"), context) == "ours"
    assert qualifier_of(load(STAGES, "dev"), {}) == QUALIFIER


def test_mailroom_policy_exits_with_2_and_names_an_unknown_stage() -> None:
    refused = run_command("--stage", "qa")
    assert (refused.exit_code, refused.stderr[:34]) == (2, "stage: 'qa' is unknown; use one of")
