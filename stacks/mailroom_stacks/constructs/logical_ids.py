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


def hold_logical_id(resource: CfnResource, other: IConstruct) -> None:
    """Give a resource, whose id is made of the path of `other`, the id that it has if the app itself has its
    stack."""
    around = Stage.of(resource)
    if around is None or not around.node.path:
        return
    outside = f"{around.node.path}/"
    _stack, *inside = resource.node.path.removeprefix(outside).split("/")
    inner_id = Names.node_unique_id(other.node)
    outer_id = unique_id(other.node.path.removeprefix(outside).split("/"))
    resource.override_logical_id(unique_id([part.replace(inner_id, outer_id) for part in inside]))


def hold_permissions(rule: IConstruct, function: IConstruct) -> None:
    """Give the permissions by which `rule` invokes `function` the ids that they have outside of a stage."""
    for child in rule.node.children:
        if isinstance(child, CfnPermission):
            hold_logical_id(child, function)


def unique_id(path: Sequence[str]) -> str:
    """The id that the CDK makes of a path of two constructs or more: their names, and a hash over the path
    (aws-cdk-lib, core/lib/private/uniqueid.ts)."""
    parts = [part for part in path if part != "Default"]
    names = [re.sub(r"[^A-Za-z0-9]", "", part) for part in parts if part != "Resource"]
    human = [name for index, name in enumerate(names) if index == 0 or not names[index - 1].endswith(name)]
    digest = hashlib.md5("/".join(parts).encode(), usedforsecurity=False).hexdigest()
    return "".join(human)[:240] + digest[:8].upper()
