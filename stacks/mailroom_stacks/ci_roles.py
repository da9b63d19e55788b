"""The role that a CI system deploys the stage with, and one that may only compare."""

from collections.abc import Sequence

from aws_cdk import (
    Annotations,
    CliCredentialsStackSynthesizer,
    DefaultStackSynthesizer,
    Duration,
    Stack,
)
from aws_cdk import aws_iam as iam
from constructs import Construct

from mailroom_stacks.constructs.grants import Grant, role
from mailroom_stacks.constructs.naming import StageStack, publish
from mailroom_stacks.settings.deploy import Deploy
from mailroom_stacks.settings.settings import Settings

BOOTSTRAP_ROLES = ("deploy", "file-publishing")
"""The roles of `cdk bootstrap` that `cdk deploy` takes. Not `lookup`: it may read whatever there is in the
account, messages and addresses too, and nothing here looks anything up."""
QUALIFIER = "@aws-cdk/core:bootstrapQualifier"
"""The context that names which bootstrap of the account is used."""
BOUNDARY = "@aws-cdk/core:permissionsBoundary"
"""The context from which every stack takes a boundary for its roles."""


class DeployStack(StageStack):
    """Trusts one identity provider's tokens, by audience and subject, for an hour at most.

    A person deploys it, with credentials of their own and not by way of the bootstrap's roles. A deployer can
    change who may deploy, unless every bootstrap's execution policies deny it. By default they allow
    everything. `mailroom docs deploy-from-ci` has what it takes.
    """

    def __init__(self, scope: Construct, settings: Settings, section: Deploy) -> None:
        super().__init__(scope, settings, "deploy", CliCredentialsStackSynthesizer())
        self._section = section
        self._qualifier = section.qualifier or self.node.try_get_context(QUALIFIER)
        self._warn_of_the_default_bootstrap(settings)
        # These two hand out nothing, so no boundary need hold them; the stage's would.
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
        """Unless somebody named a qualifier, be it the default: then it is meant."""
        if not self._qualifier:
            Annotations.of(self).add_warning_v2(
                "mailroom:default-bootstrap",
                f"mailroom.{settings.stage}.deploy: is deployed by the account's default bootstrap, whose "
                "execution role is every app's and has AdministratorAccess unless it was made with other "
                "policies; so its subjects may do anything in the account. Bootstrap with a qualifier and "
                "the policies of `mailroom policy`, and set deploy.qualifier.",
            )

    def _role(self, id_: str, name: str, subjects: Sequence[str], grant: Grant) -> iam.Role:
        trusted = iam.WebIdentityPrincipal(self._provider_arn, self._conditions(subjects))
        return role(self, id_, trusted, [grant], role_name=name, max_session_duration=Duration.hours(1))

    def _conditions(self, subjects: Sequence[str]) -> dict[str, dict[str, object]]:
        host = self._section.host
        audience: dict[str, object] = {f"{host}:aud": self._section.expected_audience}
        wanted: dict[str, object] = {f"{host}:sub": list(subjects)}
        if any(mark in subject for subject in subjects for mark in "*?"):
            return {"StringEquals": audience, "StringLike": wanted}
        return {"StringEquals": audience | wanted}

    def _through_bootstrap(self) -> Grant:
        """What `cdk deploy` calls, it calls as these roles; CloudFormation acts as a third, which nobody else
        may assume. So the rights of a deployment are those of the bootstrap's execution policies."""
        qualifier = self._qualifier or DefaultStackSynthesizer.DEFAULT_QUALIFIER
        names = [f"cdk-{qualifier}-{each}-role-{self.account}-{self.region}" for each in BOOTSTRAP_ROLES]
        arns = [
            self.format_arn(service="iam", region="", resource="role", resource_name=name) for name in names
        ]
        return Grant(["sts:AssumeRole"], arns)

    def _read_templates(self, settings: Settings) -> Grant:
        """What `cdk diff --no-change-set` calls."""
        stacks = self.format_arn(
            service="cloudformation", resource="stack", resource_name=f"{settings.name('*')}/*"
        )
        return Grant(
            ["cloudformation:DescribeStacks", "cloudformation:GetTemplate"],
            [stacks],
            wildcard="CloudFormation adds an id to a stack's name, and all stacks of the stage are compared.",
        )


def set_deploy_context(scope: Construct, settings: Settings) -> None:
    """Let the stage's permissions boundary, where it has one, hold every role, and its own bootstrap deploy
    every stack. Before the first stack."""
    section = settings.deploy
    if section and section.qualifier:
        scope.node.set_context(QUALIFIER, section.qualifier)
    if section and section.permissions_boundary:
        scope.node.set_context(BOUNDARY, {"name": section.permissions_boundary})


def warn_where_unpinned(stack: Stack, settings: Settings) -> None:
    """Say on each `cdk diff` and `cdk deploy` that a protected stage could land in the wrong account."""
    place = settings.deployment
    if place.termination_protection and not (place.account and place.region):
        Annotations.of(stack).add_warning_v2(
            "mailroom:unpinned",
            f"mailroom.{settings.stage}.deployment: is protected and not pinned; set account and region, or "
            "a deployment with other credentials makes a second stage.",
        )
