"""The stack of the console behind a team's sign-in: its routes, its function and its rights."""

from typing import Any

import pytest

from mailroom_ops.console.csv_file import LINK_SECONDS, MAX_CHARACTERS, MAX_SECONDS
from mailroom_ops.console.function import ANSWER_SECONDS, MAX_BODY
from mailroom_ops.console.sessions import SECONDS
from mailroom_ops.costs.stage_cost import stage_parts
from mailroom_stacks.console import BURST, RATE
from mailroom_stacks.settings.sentences import SettingsError
from tests.support.docs_pages import Page
from tests.support.stacks.campaign_folders import changes_for
from tests.support.stacks.templates import Templates, allowed
from tests.support.stacks.variants import variant

CONSOLE: dict[str, Any] = {
    "issuer": "https://sign-in.example.com",
    "client_id": "mailroom",
    "roles": {"read": ["desk"], "contents": ["@example.com"]},
}
ENTRA = "https://login.microsoftonline.com/"
TENANT = "9122040d-6c67-4c5b-b112-36a304b66dad"
WRITES = ("Put", "Update", "Delete", "Batch", "Send", "Create", "Invoke", "Tag", "Untag", "Start", "Purge")


@pytest.fixture(scope="module")
def stage_with_console() -> Templates:
    """A stage with the console and a campaign."""
    return variant({"console": CONSOLE, **changes_for("weekly-followers")})


def test_a_stage_without_the_setting_console_has_no_console_stack(dev: Templates) -> None:
    assert "console" not in dev.stacks
    assert not [
        name for stack in dev.stacks.values() for name in stack.body["Resources"] if "Console" in name
    ]


def test_the_function_of_the_console_may_write_only_its_sessions_csv_files_and_logs(
    stage_with_console: Templates,
) -> None:
    (role,) = stage_with_console["console"].all("IAM::Role")
    rights = allowed(role)
    writing = {action for action in rights if action.partition(":")[2].startswith(WRITES)} - {
        "dynamodb:BatchGetItem"
    }
    assert writing == {
        *("dynamodb:PutItem", "dynamodb:DeleteItem", "logs:CreateLogStream", "logs:PutLogEvents"),
        "s3:PutObject",
    }
    statements = [each for policy in role["Policies"] for each in policy["PolicyDocument"]["Statement"]]
    (sessions,) = [each for each in statements if "dynamodb:PutItem" in each["Action"]]
    assert sessions["Condition"] == {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["session#*"]}}
    assert "mailroom-dev-deeds" in f"{sessions['Resource']}"
    (files,) = [each for each in statements if "s3:PutObject" in each["Action"]]
    assert "mailroom-dev-payloads" in f"{files['Resource']}"
    assert f"{files['Resource']}".count("/console-csv/*") == 1


def test_a_stage_with_the_console_deletes_csv_files_after_a_day_and_other_stages_lack_this_rule(
    stage_with_console: Templates, dev: Templates
) -> None:
    for stage, days in ((stage_with_console, [1]), (dev, [])):
        (bucket,) = [
            bucket
            for bucket in stage["mailbox"].all("S3::Bucket")
            if "mailroom-dev-payloads" in f"{bucket['BucketName']}"
        ]
        rules = bucket["LifecycleConfiguration"]["Rules"]
        assert [rule["ExpirationInDays"] for rule in rules if rule.get("Prefix") == "console-csv/"] == days


def test_the_routes_of_the_console_accept_every_path_without_an_authorizer(
    stage_with_console: Templates,
) -> None:
    routes = stage_with_console["console"].all("ApiGatewayV2::Route")
    assert {route["RouteKey"] for route in routes} == {"ANY /", "ANY /{proxy+}"}
    assert {route["AuthorizationType"] for route in routes} == {"NONE"}


def test_the_function_of_the_console_ends_before_the_time_limit_of_api_gateway(
    stage_with_console: Templates,
) -> None:
    (function,) = stage_with_console["console"].all("Lambda::Function")
    assert function["Timeout"] < 30
    variables = function["Environment"]["Variables"]
    assert (variables["ISSUER"], variables["CLIENT_ID"]) == ("https://sign-in.example.com", "mailroom")
    assert (variables["READ"], variables["CONTENTS"]) == ('["desk"]', '["@example.com"]')


def test_the_stack_of_the_console_does_not_import_values_of_other_stacks(
    stage_with_console: Templates,
) -> None:
    assert "Fn::ImportValue" not in str(stage_with_console["console"].body)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"roles": {}}, "console.roles: lists nobody"),
        ({"scope": "email"}, "console.scope: 'email' lacks openid"),
        ({"issuer": "http://sign-in.example.com"}, "console.issuer"),
        (
            {"issuer": f"{ENTRA}common/v2.0", "roles": {"read": ["Desk"]}},
            "is not of one tenant",
        ),
        ({"issuer": f"{ENTRA}{TENANT}/v2.0"}, "is an address, which people can change at Entra"),
    ],
)
def test_a_wrong_setting_of_the_console_is_refused_with_its_reason(
    change: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(SettingsError, match=sentence):
        variant({"console": {**CONSOLE, **change}})


def test_a_local_stage_with_the_setting_console_is_refused() -> None:
    with pytest.raises(SettingsError, match="a local stage has none"):
        variant({"console": CONSOLE}, "local")


def test_the_console_accepts_an_issuer_of_one_entra_tenant_with_app_roles() -> None:
    entra = {"issuer": f"{ENTRA}{TENANT}/v2.0", "roles": {"read": ["Desk"]}, "claim": "roles"}
    assert "console" in variant({"console": {**CONSOLE, **entra}}).stacks


def test_the_page_about_the_teams_console_has_the_price_and_the_limits_of_its_stack(
    stage_with_console: Templates,
) -> None:
    text = " ".join(Page("docs/how-to/console-sign-in.md").text.split())
    prices = [
        sum(stage_parts([stack.body for stack in stage.stacks.values()], senders=1).values())
        for stage in (stage_with_console, variant(changes_for("weekly-followers")))
    ]
    assert f"${prices[0] - prices[1]:.2f} a month" in text
    assert f"at most {RATE} requests a second, and {BURST} at once" in text
    assert f"takes over {ANSWER_SECONDS:.0f} seconds, or has over {MAX_BODY // 1_000_000} MB" in text
    assert f"ends after {MAX_SECONDS:.0f} seconds or {MAX_CHARACTERS // 1_000_000} million characters" in text
    assert LINK_SECONDS == 5 * 60
    assert "a link of five minutes" in text
    assert SECONDS == 8 * 3_600
    assert "A session lasts eight hours." in text
