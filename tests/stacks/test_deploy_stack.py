"""The roles of the stack `deploy`: whom they trust, for how long, and what they may do."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, Tags, Validations
from cdk_nag import AwsSolutionsChecks

from mailroom_stacks.app.application import checked
from mailroom_stacks.app.cache import NO_BUNDLES
from mailroom_stacks.ci_roles import DeployStack, set_deploy_context
from mailroom_stacks.mailbox import MailboxStack
from mailroom_stacks.settings.settings import Settings
from mailroom_stacks.webhook import WebhookStack
from tests.support.stacks.annotations import warnings
from tests.support.stacks.refusals import dev_with, refusal_of_setting
from tests.support.stacks.templates import Template, Templates, allowed, text_of

MAIN = "repo:acme/mailroom:ref:refs/heads/main"
GITHUB: dict[str, Any] = {"provider": "github", "subjects": [MAIN]}
HOST = "token.actions.githubusercontent.com"
KNOWN = f"arn:aws:iam::111122223333:oidc-provider/{HOST}"


@cache
def deploy_stack(section: str, context: str) -> Templates:
    """The stack of stage dev with the JSON `section` as its setting deploy."""
    settings = dev_with("deploy", json.loads(section))
    assert settings.deploy
    app = App(context=json.loads(context))
    DeployStack(app, settings, settings.deploy)
    Tags.of(app).add("stage", "dev")
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    assembly = checked(app)
    (artifact,) = assembly.stacks
    return Templates(Path(assembly.directory), {"deploy": Template(artifact.template)})


def stack_of(section: dict[str, Any], **context: object) -> Template:
    """The stack with `section` as the setting deploy."""
    return deploy_stack(json.dumps(section), json.dumps(context))["deploy"]


def role(stack: Template, name: str = "mailroom-dev-deploy") -> dict[str, Any]:
    """Return a role of the stack."""
    return stack.one("IAM::Role", RoleName=name)


def trust(of: dict[str, Any]) -> dict[str, Any]:
    """The one statement that says who may assume a role."""
    (statement,) = of["AssumeRolePolicyDocument"]["Statement"]
    return dict(statement)


def test_the_deploy_role_trusts_one_audience_and_exact_subjects_for_an_hour() -> None:
    deploy = role(stack_of(GITHUB))
    assert trust(deploy)["Action"] == "sts:AssumeRoleWithWebIdentity"
    assert trust(deploy)["Condition"] == {
        "StringEquals": {f"{HOST}:aud": "sts.amazonaws.com", f"{HOST}:sub": [MAIN]}
    }
    assert deploy["MaxSessionDuration"] == 3600


def test_a_wildcard_in_a_subject_makes_the_trust_policy_use_string_like_for_subjects_only() -> None:
    tags = "repo:acme/mailroom:ref:refs/tags/v*"
    assert trust(role(stack_of({**GITHUB, "subjects": [MAIN, tags]})))["Condition"] == {
        "StringEquals": {f"{HOST}:aud": "sts.amazonaws.com"},
        "StringLike": {f"{HOST}:sub": [MAIN, tags]},
    }


def test_cloudformation_creates_the_openid_provider_without_a_function() -> None:
    stack = stack_of(GITHUB)
    assert stack.one("IAM::OIDCProvider")["Url"] == f"https://{HOST}"
    assert stack.one("IAM::OIDCProvider")["ClientIdList"] == ["sts.amazonaws.com"]
    assert not stack.all("Lambda::Function")


def test_an_existing_openid_provider_of_the_account_is_used() -> None:
    stack = stack_of({**GITHUB, "provider_arn": KNOWN})
    assert not stack.all("IAM::OIDCProvider")
    assert trust(role(stack))["Principal"] == {"Federated": KNOWN}


def test_the_deploy_role_may_assume_only_two_of_the_bootstraps_roles() -> None:
    """The third role, for look-ups, may read the whole account. CloudFormation's own role can be assumed by
    CloudFormation only."""
    place = "111122223333-eu-central-1"
    assert allowed(role(stack_of(GITHUB))) == {
        "sts:AssumeRole": {
            f"arn:aws:iam::111122223333:role/cdk-hnb659fds-{each}-role-{place}"
            for each in ("deploy", "file-publishing")
        }
    }


def test_the_deploy_role_may_assume_the_roles_of_a_custom_bootstrap_by_its_qualifier() -> None:
    stack = stack_of(GITHUB, **{"@aws-cdk/core:bootstrapQualifier": "mailprod"})
    assert all("role/cdk-mailprod-" in each for each in allowed(role(stack))["sts:AssumeRole"])


def warned(section: dict[str, Any], **context: object) -> list[str]:
    """Return the warnings about the stack."""
    settings = dev_with("deploy", section)
    assert settings.deploy
    app = App(context=context)
    set_deploy_context(app, settings)
    DeployStack(app, settings, settings.deploy)
    return warnings(app)


def test_the_accounts_default_bootstrap_raises_a_warning() -> None:
    (warning,) = warned(GITHUB)
    assert warning.startswith("mailroom.dev.deploy: uses the account's default bootstrap")


@pytest.mark.parametrize("named", ["maildev", "hnb659fds"])
def test_an_explicitly_named_bootstrap_raises_no_warning(named: str) -> None:
    assert not warned({**GITHUB, "qualifier": named})
    assert not warned(GITHUB, **{"@aws-cdk/core:bootstrapQualifier": named})


def test_the_stages_own_bootstrap_deploys_all_of_its_stacks(tmp_path: Path) -> None:
    settings = dev_with("deploy", {**GITHUB, "qualifier": "maildev"})
    assert settings.deploy
    app = App(context=NO_BUNDLES, outdir=str(tmp_path))
    set_deploy_context(app, settings)
    MailboxStack(app, settings)
    deploy = DeployStack(app, settings, settings.deploy)
    assembly = app.synth()
    artifact = assembly.get_stack_by_name(settings.name("mailbox"))
    assert "role/cdk-maildev-deploy-role-" in (artifact.assume_role_arn or "")
    taken = role(Template(assembly.get_stack_by_name(deploy.stack_name).template))
    assert all("role/cdk-maildev-" in each for each in allowed(taken)["sts:AssumeRole"])


def test_the_role_of_readers_may_compare_templates_and_cannot_read_content() -> None:
    pulls = "repo:acme/mailroom:pull_request"
    reader = role(stack_of({**GITHUB, "reader_subjects": [pulls]}), "mailroom-dev-deploy-reader")
    assert trust(reader)["Condition"]["StringEquals"][f"{HOST}:sub"] == [pulls]
    stacks = {"arn:aws:cloudformation:eu-central-1:111122223333:stack/mailroom-dev-*/*"}
    assert allowed(reader) == {
        "cloudformation:DescribeStacks": stacks,
        "cloudformation:GetTemplate": stacks,
    }


def test_the_deploy_stack_is_deployed_with_a_persons_own_credentials() -> None:
    folder = deploy_stack(json.dumps(GITHUB), "{}").folder
    manifest = json.loads((folder / "manifest.json").read_text())
    properties = manifest["artifacts"]["mailroom-dev-deploy"]["properties"]
    assert not {"assumeRoleArn", "cloudFormationExecutionRoleArn", "lookupRole"} & properties.keys()


def test_the_outputs_of_the_deploy_stack_contain_the_arns_of_its_roles() -> None:
    stack = stack_of({**GITHUB, "reader_subjects": ["repo:acme/mailroom:pull_request"]})
    assert {"DeployRoleArn", "DeployReaderRoleArn"} <= stack.body["Outputs"].keys()
    assert text_of(stack.body["Outputs"]["DeployRoleArn"]["Value"]).endswith(".Arn>")


@pytest.mark.parametrize(
    ("section", "url", "audience"),
    [
        (GITHUB, f"https://{HOST}", "sts.amazonaws.com"),
        (
            {"provider": "gitlab", "subjects": ["project_path:acme/ops/mailroom:ref_type:branch:ref:main"]},
            "https://gitlab.com",
            "https://gitlab.com",
        ),
        (
            {
                "provider": "other",
                "subjects": ["job:17"],
                "url": "https://ci.example.com/oidc",
                "audience": "aws",
            },
            "https://ci.example.com/oidc",
            "aws",
        ),
    ],
    ids=["github", "gitlab", "other"],
)
def test_each_ci_provider_has_its_issuer_and_its_audience(
    section: dict[str, Any], url: str, audience: str
) -> None:
    stack = stack_of(section)
    assert stack.one("IAM::OIDCProvider")["Url"] == url
    key = f"{url.removeprefix('https://')}:aud"
    assert trust(role(stack))["Condition"]["StringEquals"][key] == audience


@pytest.mark.parametrize(
    "subject",
    [
        "*",
        "repo:*",
        "repo:acme/*",
        "repo:acme/mailroom*:ref:refs/heads/main",
        "repo:acme/mailroom:*",
        "repo:acme/mailroom:pull_request",
        "repo:acme/mail?oom:ref:refs/heads/main",
        "project_path:acme/mailroom:ref_type:branch:ref:main",
        "repo:acme/mailroom:ref:refs/heads/*",
        "repo:acme/mailroom:ref:refs/heads/?*",
        "repo:acme/mailroom:ref:refs/tags/*",
        "repo:acme/mailroom:environment:*",
        "repo:acme/mailroom:environment:*d",
    ],
)
def test_a_subject_that_allows_other_repositories_branches_or_pull_requests_stops_synth(subject: str) -> None:
    said = refusal_of_setting("deploy", {**GITHUB, "subjects": [MAIN, subject]})
    assert said.startswith("mailroom.dev.deploy: ")
    assert f"{subject!r}, which matches too much; use repo:OWNER/NAME:ref:refs/heads/BRANCH" in said


@pytest.mark.parametrize("subject", ["repo:*", "repo:acme/mailroom:*", "repo:acme/mailroo?:pull_request"])
def test_a_subject_with_a_wildcard_is_refused_for_the_role_of_readers(subject: str) -> None:
    said = refusal_of_setting("deploy", {**GITHUB, "reader_subjects": [subject]})
    assert said.startswith("mailroom.dev.deploy.reader_subjects.0: ")


def test_a_subject_with_a_wildcard_stops_synth_if_the_ci_provider_is_unknown() -> None:
    section = {"provider": "other", "url": "https://ci.example.com", "subjects": ["team:a:*"]}
    assert "use the token's whole subject, without * and ?" in refusal_of_setting("deploy", section)


@pytest.mark.parametrize("name", ["ref:refs/tags/v*", "ref:refs/heads/release/*", "environment:prod-?"])
def test_a_wildcard_at_the_end_of_a_tag_branch_or_environment_in_a_subject_is_accepted(name: str) -> None:
    deploy = dev_with("deploy", {**GITHUB, "subjects": [f"repo:acme/mailroom:{name}"]}).deploy
    assert deploy
    assert deploy.subjects == (f"repo:acme/mailroom:{name}",)


def test_a_subject_with_all_branches_of_gitlab_stops_synth() -> None:
    section = {"provider": "gitlab", "subjects": ["project_path:acme/mailroom:ref_type:branch:ref:*"]}
    assert "which matches too much; use project_path:GROUP/PROJECT" in refusal_of_setting("deploy", section)


@pytest.mark.parametrize(
    "url",
    [
        f"https://{HOST}",
        f"https://{HOST}/acme",
        "https://Token.Actions.githubusercontent.com.:443",
        "https://token.actions.acme.ghe.com",
        "https://github.acme.com/_services/token",
    ],
)
def test_the_rules_of_a_known_issuer_apply_to_its_url_under_the_provider_other(url: str) -> None:
    section = {"provider": "other", "url": url, "subjects": ["repo:acme/mailroom:pull_request"]}
    assert "which matches too much; use repo:OWNER/NAME:ref:refs/heads/BRANCH" in refusal_of_setting(
        "deploy", section
    )


def test_a_host_that_resembles_a_known_issuer_is_another_issuer() -> None:
    section = {"provider": "other", "url": "https://gitlab.com.example.com", "subjects": ["job:17"]}
    deploy = dev_with("deploy", section).deploy
    assert deploy
    assert (deploy.signer, deploy.expected_audience) == ("other", "https://gitlab.com.example.com")


def test_a_custom_ci_provider_without_its_url_is_refused() -> None:
    section = {"provider": "other", "subjects": ["job:17"]}
    assert "has provider other and no url; add the issuer's url." in refusal_of_setting("deploy", section)


def bounded(folder: Path) -> tuple[Settings, dict[str, Template]]:
    """A stage with a permissions boundary, of some stacks with roles and the stack deploy."""
    settings = dev_with("deploy", {**GITHUB, "permissions_boundary": "mailroom-boundary"})
    assert settings.deploy
    app = App(context=NO_BUNDLES, outdir=str(folder))
    set_deploy_context(app, settings)
    WebhookStack(app, settings, MailboxStack(app, settings))
    DeployStack(app, settings, settings.deploy)
    stacks = app.synth().stacks
    return settings, {stack.stack_name: Template(stack.template) for stack in stacks}


def test_the_roles_of_functions_have_the_permissions_boundary_and_that_of_the_deployer_lacks_it(
    tmp_path: Path,
) -> None:
    settings, stacks = bounded(tmp_path)
    held = stacks[settings.name("webhook")].all("IAM::Role")
    assert held
    for each in held:
        assert text_of(each["PermissionsBoundary"]).endswith(":policy/mailroom-boundary")
    assert "PermissionsBoundary" not in role(stacks[settings.name("deploy")])
