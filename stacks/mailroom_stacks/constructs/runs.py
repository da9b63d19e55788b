"""Table of campaign runs for functions of other stacks. They use its name instead of a reference, because the
stack of the campaigns is deployed after their stacks, or not at all."""

from aws_cdk import Stack

from mailroom_stacks.constructs.grants import Grant
from mailroom_stacks.settings.settings import Settings

RUNS = "campaign-runs"
"""Name of the table, without the prefix of the stage."""


def runs_table(settings: Settings) -> str:
    """Return the name of the table, or an empty string for a stage without campaigns."""
    return settings.name(RUNS) if settings.campaigns.enabled else ""


def read_runs(stack: Stack, settings: Settings) -> list[Grant]:
    """Return the permission to read whether runs are stopped."""
    if not settings.campaigns.enabled:
        return []
    arn = stack.format_arn(service="dynamodb", resource="table", resource_name=runs_table(settings))
    return [Grant(["dynamodb:BatchGetItem"], [arn])]
