"""What collecting and composing need to reach: exactly what the enabled campaigns name."""

from collections.abc import Iterator, Sequence

from aws_cdk import Stack

from stacks.constructs.grants import Grant
from stacks.settings.enabled_campaigns import EnabledCampaign
from stacks.settings.stage import Settings

UNKNOWN_SUFFIX = "-??????"
"""Secrets Manager ends a secret's ARN with six characters of its own choice; without them it is a name."""


def read_audiences(stack: Stack, campaigns: Sequence[EnabledCampaign]) -> Iterator[Grant]:
    """Reading the files and tables of audiences."""
    audiences = [each.audience() for each in campaigns]
    files = sorted({each["location"] for each in audiences if "location" in each})
    tables = {(each["table"], each.get("index")) for each in audiences if "table" in each}
    if files:
        # Without s3:ListBucket a file that is not there is refused and not missing: a whole bucket's names
        # would be too much for a better word.
        objects = [each.removeprefix("s3://") for each in files]
        arns = [stack.format_arn(service="s3", region="", account="", resource=each) for each in objects]
        yield Grant(["s3:GetObject"], arns)
    if tables:
        names = sorted(f"{table}/index/{index}" if index else table for table, index in tables)
        arns = [stack.format_arn(service="dynamodb", resource="table", resource_name=each) for each in names]
        yield Grant(["dynamodb:Scan"], arns)


def read_secrets(settings: Settings, databases: Sequence[str]) -> Iterator[Grant]:
    """Reading who and where the databases are."""
    arns = [settings.databases[name].secret_arn for name in databases]
    if arns:
        # Whether an ARN is whole cannot be told: a secret may be called prod/app-reader.
        either = {*arns, *(f"{each}{UNKNOWN_SUFFIX}" for each in arns)}
        yield Grant(["secretsmanager:GetSecretValue"], sorted(either))
