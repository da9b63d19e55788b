"""A role may make the calls of its function on the function's resources, and no others."""

from typing import Any

import pytest

from mailroom_stacks.constructs.grants import Grant
from tests.support.stacks.templates import Templates, allowed

ACCOUNT = "eu-central-1:111122223333"
LOG = {"logs:CreateLogStream", "logs:PutLogEvents"}


def statements_of_role(role: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for policy in role["Policies"] for each in policy["PolicyDocument"]["Statement"]]


def test_mail_may_be_sent_only_from_the_from_addresses_of_the_stage(dev: Templates) -> None:
    sending = [
        each
        for role in dev["channels"].all("IAM::Role")
        for each in statements_of_role(role)
        if "ses:SendEmail" in each["Action"] or "ses:SendRawEmail" in each["Action"]
    ]
    assert len(sending) == 2
    for each in sending:
        assert each["Condition"] == {"StringEqualsIgnoreCase": {"ses:FromAddress": ["mailroom@example.com"]}}


def test_a_role_has_no_wildcard_action_bare_wildcard_or_managed_policy(dev: Templates) -> None:
    roles = [role for stack in dev.stacks.values() for role in stack.all("IAM::Role")]
    assert len(roles) == 15
    for role in roles:
        assert not {"ManagedPolicyArns", "PermissionsBoundary"} & role.keys()
        for action, resources in allowed(role).items():
            assert "*" not in action
            assert "*" not in resources
    assert not any(stack.all("IAM::Policy") for stack in dev.stacks.values())


def test_the_log_permissions_of_a_function_cover_only_its_own_log(dev: Templates) -> None:
    for stack in ("api", "channels", "dead-letters", "fax", "feedback", "routing", "webhook"):
        for function in dev[stack].all("Lambda::Function"):
            name = function["FunctionName"]
            group = f"arn:aws:logs:{ACCOUNT}:log-group:/aws/lambda/{name}:*"
            assert all(dev[stack].policy(name)[action] == {group} for action in LOG)


def test_a_function_may_not_delete_items_objects_or_dead_letters(whole: Templates) -> None:
    deletions = {"dynamodb:DeleteItem", "dynamodb:PartiQLDelete", "s3:DeleteObject", "sqs:PurgeQueue"}
    for stack in ("api", "campaigns", "channels", "dead-letters", "fax", "feedback", "routing", "webhook"):
        for function in whole[stack].all("Lambda::Function"):
            rights = whole[stack].policy(function["FunctionName"])
            assert not deletions & rights.keys(), function["FunctionName"]
            assert not any("DeadLetters" in resource for resource in rights.get("sqs:DeleteMessage", ()))


def test_a_grant_with_a_wildcard_action_or_an_unexplained_wildcard_resource_is_refused() -> None:
    with pytest.raises(ValueError, match="must give a reason"):
        Grant(["s3:GetObject"], ["arn:aws:s3:::bucket/*"])
    with pytest.raises(ValueError, match="list the actions"):
        Grant(["s3:*"], ["arn:aws:s3:::bucket"])
