"""What becomes of data when its stack is deleted."""

from aws_cdk import RemovalPolicy

from stacks.settings import Settings


def removal_policy(settings: Settings) -> RemovalPolicy:
    """The stage's choice, in CDK's words."""
    return RemovalPolicy.RETAIN if settings.deployment.removal == "retain" else RemovalPolicy.DESTROY
