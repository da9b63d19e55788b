"""Exceptions to cdk-nag's findings, each with its reason, next to the construct that it is about."""

from aws_cdk import Acknowledgment, Validations
from constructs import IConstruct


def accept(construct: IConstruct, rule: str, reason: str) -> None:
    """Accept what AwsSolutions' `rule` finds on `construct`."""
    Validations.of(construct).acknowledge(Acknowledgment(id=f"AwsSolutions-{rule}", reason=reason))
