"""Mailroom as a part of another CDK app."""

from collections.abc import Mapping
from typing import Any

from aws_cdk import Stack, Stage
from aws_cdk import aws_iam as iam
from constructs import Construct

from mailroom_stacks.app.application import build, check_templates
from mailroom_stacks.constructs.naming import parameter_of
from mailroom_stacks.constructs.stage_alarm import BEGUN, ENDED, topic_arn
from mailroom_stacks.constructs.storage import bucket_name
from mailroom_stacks.dashboard import StageMetrics
from mailroom_stacks.settings.load import load, load_campaigns, with_providers

__all__ = ["Grantable", "Mailroom"]


class Grantable:
    """Table or bucket of the stage, imported by name, so that a stack that uses it does not depend on a stack
    or an export of Mailroom."""

    def __init__(self, name: str, action: str, **arn: Any) -> None:
        """`action` is the IAM action that puts an item or object. `arn` has the parts of the ARN, as keyword
        arguments of `Stack.format_arn`."""
        self.name = name
        """Physical name, for example for the environment of a function."""
        self._action, self._arn = action, arn

    def grant_put(self, grantee: iam.IGrantable) -> iam.Grant:
        """Grant a function or role the permission to put into the table or bucket."""
        stack = Stack.of(grantee.grant_principal)  # type: ignore[arg-type] # roles and functions are constructs
        arns = [stack.format_arn(**self._arn)]
        return iam.Grant.add_to_principal(grantee=grantee, actions=[self._action], resource_arns=arns)


class Mailroom(Stage):
    """A `cdk.Stage` in another app that contains all Mailroom stacks, with the same stack names as in
    Mailroom's own app. The checks of cdk-nag and the stage's tags, bootstrap and permissions boundary apply
    only to these stacks.

    Templates and campaigns are in the folder of the app's cdk.json, as in a project of Mailroom alone.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, settings: Mapping[str, object], stage: str | None = None
    ) -> None:
        """Create the stacks. `settings` has the keys of `mailroom.<stage>` in cdk.json. `stage` is the
        stage's name, which is part of all names in AWS; by default it is `construct_id` in lower case.

        Raises SettingsError for an invalid setting, template or campaign.
        """
        super().__init__(scope, construct_id)
        check_templates()
        name = stage or construct_id.lower()
        loaded = with_providers(load({name: settings}, name), self.node.try_get_context("providers"))
        build(self, loaded, load_campaigns(loaded))
        table, bucket = loaded.name("mailbox"), bucket_name(loaded, "payloads")
        self.mailbox = Grantable(
            table, "dynamodb:PutItem", service="dynamodb", resource="table", resource_name=table
        )
        """Table into which producers put items."""
        self.payloads = Grantable(
            bucket, "s3:PutObject", service="s3", region="", account="", resource=f"{bucket}/*"
        )
        """Bucket for attachments, documents, and messages that are too large for an item."""
        self.api_url = f"{{{{resolve:ssm:{parameter_of(loaded, 'api-url')}}}}}"
        """URL of the HTTP API, as a dynamic reference. CloudFormation resolves it, so the stack that uses it
        must be deployed after this stage."""
        self.events = loaded.outcomes.event_bus
        """Name or ARN of the event bus that gets outcomes, or None if the settings have none."""
        self.alarm_topic_arn = topic_arn(loaded, BEGUN)
        """ARN of the SNS topic for alarms that begin."""
        self.alarm_ended_topic_arn = topic_arn(loaded, ENDED)
        """ARN of the SNS topic for alarms that end."""
        self.metrics = StageMetrics(self, loaded)
        """Metrics of the stage, for other dashboards."""
