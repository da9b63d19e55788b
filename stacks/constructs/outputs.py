"""Stack outputs: the names and ARNs that people, dashboards and the local stage build on."""

from aws_cdk import CfnOutput, Stack
from constructs import Construct


def publish(scope: Construct, **values: str) -> None:
    """An output for each keyword, under exactly that name in the stack of `scope`."""
    stack = Stack.of(scope)
    for name, value in values.items():
        CfnOutput(stack, name, value=value)


def pascal(short_name: str) -> str:
    """mail-bulk → MailBulk, as output names want it."""
    return "".join(part.capitalize() for part in short_name.split("-"))
