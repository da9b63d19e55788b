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


class Grantable:
    """Table or bucket of the stage, by name: a stack that uses it waits for no stack of ours, and imports no
    export of ours."""

    def __init__(self, name: str, action: str, **arn: Any) -> None:
        """Keep the `action` of a put, and the parts of the ARN that `Stack.format_arn` names."""
        self.name = name
        """Physical name, for the environment of a function."""
        self._action, self._arn = action, arn

    def grant_put(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let a function or role put into the table or bucket."""
        stack = Stack.of(grantee.grant_principal)  # type: ignore[arg-type] # a role or a function is one
        arns = [stack.format_arn(**self._arn)]
        return iam.Grant.add_to_principal(grantee=grantee, actions=[self._action], resource_arns=arns)


class Mailroom(Stage):
    """Stage of all Mailroom stacks in another app, under their own names. cdk-nag's checks, the stage's tags,
    its bootstrap and its boundary apply only to these stacks.

    Templates and campaigns lie beside the app's cdk.json, as in a project of Mailroom alone.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, settings: Mapping[str, object], stage: str | None = None
    ) -> None:
        """Make the stacks. `settings` has the keys of `mailroom.<stage>` in cdk.json. `stage` is the stage's
        name, in every name that AWS shows; by default `construct_id` in lower case.

        Raises SettingsError for a wrong setting, template or campaign.
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
        """Bucket for attachments, documents, and contents too large for an item."""
        self.api_url = f"{{{{resolve:ssm:{parameter_of(loaded, 'api-url')}}}}}"
        """URL of the HTTP API. CloudFormation reads it at a deployment that follows this stage's."""
        self.events = loaded.outcomes.event_bus
        """Name or ARN of the event bus that gets outcomes, if the settings name one."""
        self.alarm_topic_arn = topic_arn(loaded, BEGUN)
        """SNS topic for alarms that begin."""
        self.alarm_ended_topic_arn = topic_arn(loaded, ENDED)
        """SNS topic for alarms that end."""
        self.metrics = StageMetrics(self, loaded)
        """Metrics of the stage, for dashboards."""
