"""Gradual deployment: CodeDeploy moves a sender's batches to each new version step by step."""

from collections.abc import Sequence

from aws_cdk import aws_codedeploy as codedeploy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk.aws_cloudwatch import IAlarm
from constructs import Construct

from mailroom_stacks.constructs.grants import Grant, role

ALIAS = "live"
"""Alias that a sender's mapping invokes, so that each batch has code and variables of one release."""


def shift_gradually(scope: Construct, name: str, alias: lambda_.Alias, alarms: Sequence[IAlarm]) -> None:
    """Let CodeDeploy move `alias` of the function `name` to its new versions, and back if an alarm rings.

    A tenth of the invocations is added every three minutes. Ten steps of a minute would be over before the
    errors alarm, which waits for three periods of five minutes, could ring.
    """
    function = alias.version.lambda_.function_arn
    versions = ["lambda:GetAlias", "lambda:UpdateAlias", "lambda:GetProvisionedConcurrencyConfig"]
    codedeployer = role(
        scope,
        "ShiftRole",
        iam.ServicePrincipal("codedeploy.amazonaws.com"),
        [
            Grant(versions, [function, f"{function}:{ALIAS}"]),
            Grant(
                ["cloudwatch:DescribeAlarms"],
                ["*"],
                wildcard="AWS's own policy for CodeDeploy names no alarm, because it may list all.",
            ),
        ],
    )
    codedeploy.LambdaDeploymentGroup(
        scope,
        "Shift",
        application=codedeploy.LambdaApplication(scope, "Application", application_name=name),
        deployment_group_name=name,
        deployment_config=codedeploy.LambdaDeploymentConfig.LINEAR_10_PERCENT_EVERY_3_MINUTES,
        alias=alias,
        alarms=alarms,
        # The deployment group would attach AWS's managed policy, which may update each function of the
        # account.
        role=codedeployer.without_policy_updates(),
    )
