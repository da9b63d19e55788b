"""Logical ids that are the same in every app that contains a stage's stacks.

The CDK derives a few ids from the whole path of another construct. If the stack is in a `cdk.Stage`, this
path begins with the id of that `cdk.Stage`. With another id, CloudFormation creates a second resource and
deletes the first. For a subscription this is harmful: SNS returns the ARN of the existing subscription for
the new one, so CloudFormation then deletes the only one.
"""

import hashlib
import re
from collections.abc import Sequence

from aws_cdk import CfnResource, Names, Stage
from aws_cdk.aws_lambda import CfnPermission
from constructs import IConstruct


def hold_logical_id(resource: CfnResource, other: IConstruct) -> None:
    """Set the id of `resource`, which the CDK derives from the path of `other`, to the id that it has if the
    stack is directly in the app."""
    around = Stage.of(resource)
    if around is None or not around.node.path:
        return
    outside = f"{around.node.path}/"
    _stack, *inside = resource.node.path.removeprefix(outside).split("/")
    inner_id = Names.node_unique_id(other.node)
    outer_id = unique_id(other.node.path.removeprefix(outside).split("/"))
    resource.override_logical_id(unique_id([part.replace(inner_id, outer_id) for part in inside]))


def hold_permissions(rule: IConstruct, function: IConstruct) -> None:
    """Set the ids of the permissions with which `rule` invokes `function` to the ids that they have outside
    of a `cdk.Stage`."""
    for child in rule.node.children:
        if isinstance(child, CfnPermission):
            hold_logical_id(child, function)


def unique_id(path: Sequence[str]) -> str:
    """Return the id that the CDK derives from a path of at least two constructs: their names, and a hash of
    the path (aws-cdk-lib, core/lib/private/uniqueid.ts)."""
    parts = [part for part in path if part != "Default"]
    names = [re.sub(r"[^A-Za-z0-9]", "", part) for part in parts if part != "Resource"]
    human = [name for index, name in enumerate(names) if index == 0 or not names[index - 1].endswith(name)]
    digest = hashlib.md5("/".join(parts).encode(), usedforsecurity=False).hexdigest()
    return "".join(human)[:240] + digest[:8].upper()
