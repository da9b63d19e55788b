"""Gradual deployment: CodeDeploy moves the invocations of a sender to each new version step by step."""

from collections.abc import Sequence

from aws_cdk import aws_codedeploy as codedeploy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk.aws_cloudwatch import IAlarm
from constructs import Construct

from mailroom_stacks.constructs.grants import Grant, role

ALIAS = "live"
"""Alias that the event source mapping of a sender invokes, so that the code and variables of a batch are from
one release."""


def shift_gradually(scope: Construct, name: str, alias: lambda_.Alias, alarms: Sequence[IAlarm]) -> None:
    """Let CodeDeploy move `alias` of the function `name` to each new version, and back if an alarm rings.

    Every three minutes, a tenth of the invocations is moved. Ten steps of one minute would end before the
    errors alarm, which looks at three periods of five minutes, could ring.
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
                wildcard="AWS's policy for CodeDeploy allows all alarms, because it may list them.",
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
        # By default the deployment group would attach AWS's managed policy, which may update every function
        # of the account.
        role=codedeployer.without_policy_updates(),
    )
