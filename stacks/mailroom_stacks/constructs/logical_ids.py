"""Logical ids that stay the same whatever app a stage is in.

The CDK makes a few ids of the whole path of another construct, which begins with the id of the `cdk.Stage`
that a stack is in. Another id is another resource. For a subscription that is harmful: SNS answers the new
one with the ARN of the old one, and CloudFormation then deletes the old one, and with it the only one.
"""

import hashlib
import re
from collections.abc import Sequence

from aws_cdk import CfnResource, Names, Stage
from aws_cdk.aws_lambda import CfnPermission
from constructs import IConstruct


def hold_logical_id(resource: CfnResource, about: IConstruct) -> None:
    """Give a resource, whose id is made of the path of `about`, the id that it has where its stack is in no
    stage but the app."""
    around = Stage.of(resource)
    if around is None or not around.node.path:
        return
    outside = f"{around.node.path}/"
    _stack, *inside = resource.node.path.removeprefix(outside).split("/")
    made, wanted = (
        Names.node_unique_id(about.node),
        unique_id(about.node.path.removeprefix(outside).split("/")),
    )
    resource.override_logical_id(unique_id([each.replace(made, wanted) for each in inside]))


def hold_permissions(rule: IConstruct, function: IConstruct) -> None:
    """Give the permissions by which `rule` invokes `function` the ids that they have outside of a stage."""
    for child in rule.node.children:
        if isinstance(child, CfnPermission):
            hold_logical_id(child, function)


def unique_id(path: Sequence[str]) -> str:
    """The id that the CDK makes of a path of two constructs or more: their names, and a hash over the path
    (aws-cdk-lib, core/lib/private/uniqueid.ts)."""
    shown = [each for each in path if each != "Default"]
    names = [re.sub(r"[^A-Za-z0-9]", "", each) for each in shown if each != "Resource"]
    human = [name for at, name in enumerate(names) if at == 0 or not names[at - 1].endswith(name)]
    digest = hashlib.md5("/".join(shown).encode(), usedforsecurity=False).hexdigest()
    return "".join(human)[:240] + digest[:8].upper()
