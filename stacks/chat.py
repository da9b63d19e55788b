"""Alarms written into a chat, by AWS Chatbot (Amazon Q Developer in chat applications)."""

from aws_cdk import Aws, Stack
from aws_cdk import aws_chatbot as chatbot
from aws_cdk import aws_iam as iam

from stacks.settings.monitoring import Slack, Teams
from stacks.settings.stage import Settings

SERVICE = "chatbot.amazonaws.com"
GUARDRAIL = "CloudWatchReadOnlyAccess"
"""The most that anybody in the chat may do, whatever a role allows; without it that is everything."""


def write_to_chats(stack: Stack, settings: Settings, topic_arn: str) -> None:
    """Let the topic's messages be written where the settings say."""
    wanted = settings.monitoring
    if wanted.slack:
        _slack(stack, settings, wanted.slack, topic_arn)
    if wanted.teams:
        _teams(stack, settings, wanted.teams, topic_arn)


def _slack(stack: Stack, settings: Settings, slack: Slack, topic_arn: str) -> None:
    chatbot.CfnSlackChannelConfiguration(
        stack,
        "Slack",
        configuration_name=settings.name("slack"),
        slack_workspace_id=slack.workspace_id,
        slack_channel_id=slack.channel_id,
        iam_role_arn=_role(stack, "SlackRole").role_arn,
        guardrail_policies=[_guardrail()],
        sns_topic_arns=[topic_arn],
        logging_level="ERROR",
    )


def _teams(stack: Stack, settings: Settings, teams: Teams, topic_arn: str) -> None:
    chatbot.CfnMicrosoftTeamsChannelConfiguration(
        stack,
        "Teams",
        configuration_name=settings.name("teams"),
        teams_tenant_id=teams.tenant_id,
        team_id=teams.team_id,
        teams_channel_id=teams.channel_id,
        iam_role_arn=_role(stack, "TeamsRole").role_arn,
        guardrail_policies=[_guardrail()],
        sns_topic_arns=[topic_arn],
        logging_level="ERROR",
    )


def _role(stack: Stack, construct_id: str) -> iam.Role:
    """It has to have one. Without a policy: alarms are read in the chat, and nothing is done from there."""
    account = {"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}}
    return iam.Role(stack, construct_id, assumed_by=iam.ServicePrincipal(SERVICE, conditions=account))


def _guardrail() -> str:
    return f"arn:{Aws.PARTITION}:iam::aws:policy/{GUARDRAIL}"
