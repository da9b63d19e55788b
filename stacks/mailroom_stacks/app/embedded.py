"""Mailroom as a part of somebody's CDK app."""

from collections.abc import Mapping
from typing import Any

from aws_cdk import Stack, Stage
from aws_cdk import aws_iam as iam
from constructs import Construct

from mailroom_stacks.app.application import build, check_templates
from mailroom_stacks.constructs.alarms import BEGUN, ENDED, topic_arn
from mailroom_stacks.constructs.naming import parameter_of
from mailroom_stacks.constructs.storage import bucket_name
from mailroom_stacks.dashboard import StageMetrics
from mailroom_stacks.settings.load import load, load_campaigns, with_providers


class Grantable:
    """A table or bucket of the stage, by its name: whoever uses it waits for no stack of ours, and no stack
    of ours is held back by an export that somebody imports."""

    def __init__(self, name: str, action: str, **arn: Any) -> None:
        """`action` is what putting takes; `arn` are the parts of the ARN that `Stack.format_arn` names."""
        self.name = name
        """Its name, for the environment of a function."""
        self._action, self._arn = action, arn

    def grant_put(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let a function, or a role, put into it."""
        stack = Stack.of(grantee.grant_principal)  # type: ignore[arg-type] # a role or a function is one
        arns = [stack.format_arn(**self._arn)]
        return iam.Grant.add_to_principal(grantee=grantee, actions=[self._action], resource_arns=arns)


class Mailroom(Stage):
    """All stacks of one stage, in an app of yours, with their own names. cdk-nag, the stage's tags, its
    bootstrap and its boundary hold for them, and for nothing else of the app.

    Templates and campaigns lie beside the app's cdk.json, as in a project of Mailroom's own.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, settings: Mapping[str, object], stage: str | None = None
    ) -> None:
        """`settings` are those of a stage, as they would stand below `mailroom.<stage>` in cdk.json; `stage`
        is its name, in every name that AWS shows (None: `construct_id` in lower case). Raises SettingsError
        for a wrong setting, template or campaign."""
        super().__init__(scope, construct_id)
        check_templates()
        name = stage or construct_id.lower()
        loaded = with_providers(load({name: settings}, name), self.node.try_get_context("providers"))
        build(self, loaded, load_campaigns(loaded))
        table, bucket = loaded.name("mailbox"), bucket_name(loaded, "payloads")
        self.mailbox = Grantable(
            table, "dynamodb:PutItem", service="dynamodb", resource="table", resource_name=table
        )
        """The table that items are put into."""
        self.payloads = Grantable(
            bucket, "s3:PutObject", service="s3", region="", account="", resource=f"{bucket}/*"
        )
        """The bucket for attachments, documents, and what is too large for an item."""
        self.api_url = f"{{{{resolve:ssm:{parameter_of(loaded, 'api-url')}}}}}"
        """The URL of the HTTP API, as CloudFormation reads it when it deploys: after this stage."""
        self.events = loaded.outcomes.event_bus
        """The event bus that hears of outcomes: its name or ARN; None: none does."""
        self.alarm_topic_arn = topic_arn(loaded, BEGUN)
        """The SNS topic that hears of alarms which begin."""
        self.alarm_ended_topic_arn = topic_arn(loaded, ENDED)
        """The SNS topic that hears of alarms which end."""
        self.metrics = StageMetrics(self, loaded)
        """The stage's metrics, for dashboards."""
