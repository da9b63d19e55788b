"""IAM roles for a CI system: one that deploys the stage, and one that only compares templates."""

from collections.abc import Sequence

from aws_cdk import Annotations, CliCredentialsStackSynthesizer, DefaultStackSynthesizer, Duration, Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from mailroom_stacks.constructs.grants import Grant, role
from mailroom_stacks.constructs.naming import StageStack, publish
from mailroom_stacks.settings.deploy import Deploy
from mailroom_stacks.settings.settings import Settings

BOOTSTRAP_ROLES = ("deploy", "file-publishing")
"""Roles of `cdk bootstrap` that `cdk deploy` assumes. The role `lookup` is left out: it may read everything
in the account, including messages and addresses, and this app looks up nothing."""
QUALIFIER = "@aws-cdk/core:bootstrapQualifier"
"""Context key of the qualifier of the CDK bootstrap."""
BOUNDARY = "@aws-cdk/core:permissionsBoundary"
"""Context key of the permissions boundary for the roles of all stacks."""


class DeployStack(StageStack):
    """Roles that trust the tokens of one identity provider, by audience and subject, for at most an hour.

    A person deploys this stack with their own credentials, not by the roles of the bootstrap. A role that
    deploys could change who may deploy, unless the execution policies of every bootstrap deny it. By default
    they allow everything. `mailroom docs deploy-from-ci` explains the set-up.
    """

    def __init__(self, scope: Construct, settings: Settings, section: Deploy) -> None:
        super().__init__(scope, settings, "deploy", CliCredentialsStackSynthesizer())
        self._section = section
        self._qualifier = section.qualifier or self.node.try_get_context(QUALIFIER)
        self._warn_of_the_default_bootstrap(settings)
        # The CDK would apply the permissions boundary from the context also to these two roles, which only
        # assume roles of the bootstrap or read templates.
        iam.PermissionsBoundary.of(self).clear()
        self._provider_arn = section.provider_arn or (
            iam.OidcProviderNative(
                self, "Provider", url=section.issuer, client_ids=[section.expected_audience]
            ).oidc_provider_arn
        )
        deploy = self._role("Deploy", settings.name("deploy"), section.subjects, self._through_bootstrap())
        publish(self, DeployRoleArn=deploy.role_arn)
        if section.reader_subjects:
            grant = self._read_templates(settings)
            reader = self._role("Reader", settings.name("deploy-reader"), section.reader_subjects, grant)
            publish(self, DeployReaderRoleArn=reader.role_arn)

    def _warn_of_the_default_bootstrap(self, settings: Settings) -> None:
        """Warn if neither the settings nor the context set a qualifier, because the account's default
        bootstrap then deploys the stage."""
        if not self._qualifier:
            Annotations.of(self).add_warning_v2(
                "mailroom:default-bootstrap",
                f"mailroom.{settings.stage}.deploy: uses the account's default bootstrap. All apps share its "
                "execution role, which has AdministratorAccess unless the bootstrap had other policies, "
                "so the subjects may do anything in the account. Bootstrap with a qualifier and "
                "the policies of `mailroom policy`, and set deploy.qualifier.",
            )

    def _role(self, id_: str, name: str, subjects: Sequence[str], grant: Grant) -> iam.Role:
        trusted = iam.WebIdentityPrincipal(self._provider_arn, self._conditions(subjects))
        return role(self, id_, trusted, [grant], role_name=name, max_session_duration=Duration.hours(1))

    def _conditions(self, subjects: Sequence[str]) -> dict[str, dict[str, object]]:
        host = self._section.host
        audience: dict[str, object] = {f"{host}:aud": self._section.expected_audience}
        subject: dict[str, object] = {f"{host}:sub": list(subjects)}
        if any(mark in name for name in subjects for mark in "*?"):
            return {"StringEquals": audience, "StringLike": subject}
        return {"StringEquals": audience | subject}

    def _through_bootstrap(self) -> Grant:
        """Return the permission to assume the roles of the bootstrap, with which `cdk deploy` sends its
        requests. CloudFormation uses a third role, so a deployment has the permissions of the bootstrap's
        execution policies."""
        qualifier = self._qualifier or DefaultStackSynthesizer.DEFAULT_QUALIFIER
        names = [f"cdk-{qualifier}-{short}-role-{self.account}-{self.region}" for short in BOOTSTRAP_ROLES]
        arns = [
            self.format_arn(service="iam", region="", resource="role", resource_name=name) for name in names
        ]
        return Grant(["sts:AssumeRole"], arns)

    def _read_templates(self, settings: Settings) -> Grant:
        """Return the permissions that `cdk diff --no-change-set` needs."""
        stacks = self.format_arn(
            service="cloudformation", resource="stack", resource_name=f"{settings.name('*')}/*"
        )
        return Grant(
            ["cloudformation:DescribeStacks", "cloudformation:GetTemplate"],
            [stacks],
            wildcard="CloudFormation adds an id to a stack's name, and all stacks of the stage are compared.",
        )


def set_deploy_context(scope: Construct, settings: Settings) -> None:
    """Set the context so that the stage's permissions boundary applies to every role, and its own bootstrap
    to every stack, if the settings have them. Must be called before the first stack is created."""
    section = settings.deploy
    if section and section.qualifier:
        scope.node.set_context(QUALIFIER, section.qualifier)
    if section and section.permissions_boundary:
        scope.node.set_context(BOUNDARY, {"name": section.permissions_boundary})


def warn_where_unpinned(stack: Stack, settings: Settings) -> None:
    """Add a warning, shown by each `cdk diff` and `cdk deploy`, if a protected stage could be deployed to a
    wrong account."""
    place = settings.deployment
    if place.termination_protection and not (place.account and place.region):
        Annotations.of(stack).add_warning_v2(
            "mailroom:unpinned",
            f"mailroom.{settings.stage}.deployment: is protected but has no account or region; set both, or "
            "a deployment with other credentials creates a second stage.",
        )
