"""Permissions of roles. Each grant names its actions and resources, and gives a reason for a wildcard."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aws_cdk import Aws, Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from mailroom_stacks.constructs.naming import accept


@dataclass(frozen=True)
class Grant:
    """Permission for `actions` on `resources`, or a denial that overrides all permissions. Raises ValueError
    for a wildcard in an action, and for a wildcard in a resource without a reason."""

    actions: Sequence[str]
    resources: Sequence[str]
    conditions: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    wildcard: str = ""
    """Reason for a `*` in a resource. It is required if and only if there is one."""
    denied: bool = False

    def __post_init__(self) -> None:
        if any("*" in action for action in self.actions):
            raise ValueError(f"{self.actions} contain a wildcard; list the actions.")
        if any("*" in resource for resource in self.resources) != bool(self.wildcard):
            raise ValueError(f"{self.resources}: `wildcard` must give a reason if and only if there is a *.")

    def statement(self) -> iam.PolicyStatement:
        """Return the grant as a statement of an IAM policy."""
        return iam.PolicyStatement(
            effect=iam.Effect.DENY if self.denied else iam.Effect.ALLOW,
            actions=list(self.actions),
            resources=list(self.resources),
            conditions=dict(self.conditions),
        )


def role(
    scope: Construct, construct_id: str, trusted: iam.IPrincipal, grants: Sequence[Grant], **options: Any
) -> iam.Role:
    """Create a role that `trusted` may assume, with one inline policy of all `grants`. An inline policy
    exists as soon as the role, so before an event source mapping polls with it. The role accepts cdk-nag's
    findings only for wildcards in the grants, each with its reason. `options` are properties of the CDK's
    Role."""
    statements = [grant.statement() for grant in grants]
    iam_role = iam.Role(
        scope,
        construct_id,
        assumed_by=trusted,
        inline_policies={"least-privilege": iam.PolicyDocument(statements=statements)},
        **options,
    )
    for grant in grants:
        for resource in grant.resources:
            if "*" in resource:
                name = _as_found(Stack.of(iam_role).resolve(resource))
                accept(iam_role, f"IAM5[Resource::{name}]", grant.wildcard)
    return iam_role


def scheduler_role(scope: Construct, group: str, grants: Sequence[Grant]) -> iam.Role:
    """Create the role of the EventBridge schedules of `group`, with the permissions `grants`."""
    arn = Stack.of(scope).format_arn(service="scheduler", resource="schedule-group", resource_name=group)
    conditions = {"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID, "aws:SourceArn": arn}}
    scheduler = iam.ServicePrincipal("scheduler.amazonaws.com", conditions=conditions)
    return role(scope, "Role", scheduler, grants)


def _as_found(resource: Any) -> str:
    """Return the ARN `resource` in the form of cdk-nag's findings: the parts of `Fn::Join` are joined, and a
    reference is in angle brackets, such as <Queue.Arn>."""
    if isinstance(resource, str):
        return resource
    ((function, argument),) = resource.items()
    if function == "Fn::Join":
        return str(argument[0]).join(map(_as_found, argument[1]))
    return f"<{argument if function == 'Ref' else '.'.join(argument)}>"
