"""What a role may do: each grant names its actions and resources, and a wildcard gives its reason."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aws_cdk import Aws, Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from mailroom_stacks.constructs.naming import accept


@dataclass(frozen=True)
class Grant:
    """Allows `actions` on `resources`, or denies them whatever else allows them. Raises ValueError for a
    wildcard without a reason."""

    actions: Sequence[str]
    resources: Sequence[str]
    conditions: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    wildcard: str = ""
    """Why a resource has to hold a `*`."""
    denied: bool = False

    def __post_init__(self) -> None:
        if any("*" in action for action in self.actions):
            raise ValueError(f"{self.actions} hold a wildcard; name the actions.")
        if any("*" in resource for resource in self.resources) != bool(self.wildcard):
            raise ValueError(f"{self.resources}: a wildcard needs its reason, and only a wildcard.")

    def statement(self) -> iam.PolicyStatement:
        """The grant in IAM's words."""
        return iam.PolicyStatement(
            effect=iam.Effect.DENY if self.denied else iam.Effect.ALLOW,
            actions=list(self.actions),
            resources=list(self.resources),
            conditions=dict(self.conditions),
        )


def role(
    scope: Construct, construct_id: str, trusted: iam.IPrincipal, grants: Sequence[Grant], **options: Any
) -> iam.Role:
    """A role for `trusted`, with one inline policy of all `grants`: there as soon as its role is, before any
    mapping polls with it. Of cdk-nag's findings the role accepts only those on wildcards of the grants, each
    with its reason. `options` are CDK's own."""
    statements = [grant.statement() for grant in grants]
    made = iam.Role(
        scope,
        construct_id,
        assumed_by=trusted,
        inline_policies={"least-privilege": iam.PolicyDocument(statements=statements)},
        **options,
    )
    for grant in grants:
        for resource in grant.resources:
            if "*" in resource:
                accept(made, f"IAM5[Resource::{_as_found(Stack.of(made).resolve(resource))}]", grant.wildcard)
    return made


def scheduler_role(scope: Construct, group: str, queue_arns: Sequence[str]) -> iam.Role:
    """The role that the EventBridge schedules of `group` send to queues with."""
    arn = Stack.of(scope).format_arn(service="scheduler", resource="schedule-group", resource_name=group)
    conditions = {"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID, "aws:SourceArn": arn}}
    scheduler = iam.ServicePrincipal("scheduler.amazonaws.com", conditions=conditions)
    return role(scope, "Role", scheduler, [Grant(["sqs:SendMessage"], queue_arns)])


def _as_found(resource: Any) -> str:
    """`resource` as cdk-nag writes it: joined, with references in angle brackets."""
    if isinstance(resource, str):
        return resource
    ((function, argument),) = resource.items()
    if function == "Fn::Join":
        return str(argument[0]).join(map(_as_found, argument[1]))
    return f"<{argument if function == 'Ref' else '.'.join(argument)}>"
