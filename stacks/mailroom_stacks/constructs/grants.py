"""Rights of roles: each grant names its actions and resources, and gives a reason for a wildcard."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aws_cdk import Aws, Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from mailroom_stacks.constructs.naming import accept


@dataclass(frozen=True)
class Grant:
    """Right to `actions` on `resources`, or a denial that overrides all rights. Raises ValueError for a
    wildcard without a reason."""

    actions: Sequence[str]
    resources: Sequence[str]
    conditions: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    wildcard: str = ""
    """Reason for a `*` in a resource."""
    denied: bool = False

    def __post_init__(self) -> None:
        if any("*" in action for action in self.actions):
            raise ValueError(f"{self.actions} hold a wildcard; name the actions.")
        if any("*" in resource for resource in self.resources) != bool(self.wildcard):
            raise ValueError(f"{self.resources}: a wildcard needs its reason, and only a wildcard.")

    def statement(self) -> iam.PolicyStatement:
        """Return the grant as a statement of IAM."""
        return iam.PolicyStatement(
            effect=iam.Effect.DENY if self.denied else iam.Effect.ALLOW,
            actions=list(self.actions),
            resources=list(self.resources),
            conditions=dict(self.conditions),
        )


def role(
    scope: Construct, construct_id: str, trusted: iam.IPrincipal, grants: Sequence[Grant], **options: Any
) -> iam.Role:
    """Make a role for `trusted`, with one inline policy of all `grants`, which exists as soon as the role
    does, before any mapping polls with it. Of cdk-nag's findings the role accepts only those on wildcards of
    the grants, each with its reason. `options` are CDK's own."""
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


def scheduler_role(scope: Construct, group: str, queue_arns: Sequence[str]) -> iam.Role:
    """Make the role by which the EventBridge schedules of `group` send to queues."""
    arn = Stack.of(scope).format_arn(service="scheduler", resource="schedule-group", resource_name=group)
    conditions = {"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID, "aws:SourceArn": arn}}
    scheduler = iam.ServicePrincipal("scheduler.amazonaws.com", conditions=conditions)
    return role(scope, "Role", scheduler, [Grant(["sqs:SendMessage"], queue_arns)])


def _as_found(resource: Any) -> str:
    """Return `resource` as cdk-nag writes it: joined, with references in angle brackets."""
    if isinstance(resource, str):
        return resource
    ((function, argument),) = resource.items()
    if function == "Fn::Join":
        return str(argument[0]).join(map(_as_found, argument[1]))
    return f"<{argument if function == 'Ref' else '.'.join(argument)}>"
