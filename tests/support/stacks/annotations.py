"""Warnings that the CDK's command line would print."""

from constructs import Construct


def warnings(scope: Construct) -> list[str]:
    """The warnings on whatever stands in `scope`.

    Read off the constructs: the assembly's own `messages` depend on which of the CDK's modules were imported.
    """
    return [
        str(entry.data)
        for each in scope.node.find_all()
        for entry in each.node.metadata
        if entry.type == "aws:cdk:warning"
    ]
