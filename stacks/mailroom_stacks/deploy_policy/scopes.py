"""Resources and conditions of each action: the stage's own names if IAM can restrict the action to them, or
else a condition."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import chain

from mailroom_stacks.deploy_policy.actions import resource_kinds
from mailroom_stacks.deploy_policy.document import Conditions, Statement


class UnscopedError(Exception):
    """An action that the tables of this module cannot restrict to the stage. The text contains the action."""


@dataclass(frozen=True)
class Place:
    """Account, region and partition of a stage, and the names by which IAM identifies its resources."""

    stage: str
    account: str = "*"
    region: str = "*"
    partition: str = "aws"
    qualifier: str = "hnb659fds"
    configuration_sets: tuple[str, ...] = ()
    """Names of the configuration sets of SES and of the SMS service."""
    passed_to: tuple[str, ...] = ()
    """Services that the stage's roles trust, so that the roles are passed to them."""
    key_tags: tuple[tuple[str, str], ...] = ()
    """Tags that identify a KMS key of the stage. Without tags, the policy does not allow actions on keys."""
    boundary: str | None = None
    """Name of the managed policy that is the permissions boundary of every role."""

    def arn(self, service: str, resource: str, *, region: bool = True, account: bool = True) -> str:
        """Return the ARN of a resource in this account and region."""
        place = f"{self.region if region else ''}:{self.account if account else ''}"
        return f"arn:{self.partition}:{service}:{place}:{resource}"

    @property
    def own(self) -> str:
        """Pattern that matches the names of the stage's resources."""
        return f"mailroom-{self.stage}-*"


_MADE_BY_AWS = ("ops.apigateway.amazonaws.com",)
"""Services for which a deployment may create service-linked roles, whose permissions AWS defines."""
_MAPPING = ("lambda:*EventSourceMapping",)
_KEY = ("kms:Disable*", "kms:EnableKey", "kms:Put*", "kms:Schedule*", "kms:Untag*", "kms:Update*Desc*")
"""Actions that change an existing key. CloudFormation's actions right after CreateKey are not among them: it
reads the key and turns rotation on. These do no harm to keys of others, and IAM may take up to five minutes
to apply the tag of a new key
(https://docs.aws.amazon.com/kms/latest/developerguide/tag-authorization.html)."""
_BOUNDED = ("iam:CreateRole", "iam:PutRolePolicy", "iam:PutRolePermissionsBoundary")


def conditions_of(action: str, place: Place) -> Conditions:
    """Return the conditions of an action, which must all match. Most actions have none. Raises
    UnscopedError."""

    def any_of(patterns: Iterable[str]) -> bool:
        return any(fnmatchcase(action, pattern) for pattern in patterns)

    if any_of(_MAPPING):
        return (("ArnLike", "lambda:FunctionArn", (place.arn("lambda", f"function:{place.own}"),)),)
    if action == "iam:CreateServiceLinkedRole":
        return (("StringEquals", "iam:AWSServiceName", _MADE_BY_AWS),)
    if action == "iam:PassRole":
        return (("StringEquals", "iam:PassedToService", place.passed_to),)
    if any_of(_BOUNDED) and place.boundary:
        bound = place.arn("iam", f"policy/{place.boundary}", region=False)
        # If the settings have no account, the ARN contains a `*`, which StringEquals would compare literally.
        return (("ArnLike", "iam:PermissionsBoundary", (bound,)),)
    if any_of(_KEY):
        return _tagged("StringEquals", "aws:ResourceTag", action, place)
    if action == "kms:TagResource":
        # A request that changes other tags contains only those, so the condition allows a missing tag.
        return _tagged("StringEqualsIfExists", "aws:RequestTag", action, place)
    return ()


def _tagged(operator: str, key: str, action: str, place: Place) -> Conditions:
    if not place.key_tags:
        raise UnscopedError(
            f"{action}: the KMS keys of the stage have no tag `stage`; add it to deployment.tags."
        )
    return tuple((operator, f"{key}/{tag}", (value,)) for tag, value in place.key_tags)


def _scopes(place: Place) -> Mapping[tuple[str, str], tuple[str, ...]]:
    pattern, arn = place.own, place.arn
    group = f"mailroom-{place.stage}"
    sets = place.configuration_sets
    return {
        # AWS generates the ids of APIs, so these ARNs cannot be limited to the stage.
        ("apigateway", "apis"): (
            arn("apigateway", "/apis", account=False),
            arn("apigateway", "/apis/*", account=False),
            arn("apigateway", "/tags/*", account=False),
        ),
        ("cloudwatch", "alarm"): (arn("cloudwatch", f"alarm:{pattern}"),),
        ("cloudwatch", "dashboard"): (
            arn("cloudwatch", f"dashboard/{group}", region=False),
            arn("cloudwatch", f"dashboard/{pattern}", region=False),
        ),
        ("dynamodb", "table"): (arn("dynamodb", f"table/{pattern}"),),
        ("events", "rule-on-default-event-bus"): (arn("events", f"rule/{pattern}"),),
        ("iam", "service-role"): (arn("iam", "role/aws-service-role/*", region=False),),
        ("iam", "role"): (arn("iam", f"role/{pattern}", region=False),),
        ("kms", "alias"): (arn("kms", f"alias/{pattern}"),),
        ("kms", "key"): (arn("kms", "key/*"),),
        ("lambda", "eventsourcemapping"): (arn("lambda", "event-source-mapping:*"),),
        ("lambda", "function"): (arn("lambda", f"function:{pattern}"),),
        ("logs", "log-group"): (
            arn("logs", f"log-group:/aws/lambda/{pattern}"),
            arn("logs", f"log-group:/aws/vendedlogs/{pattern}"),
        ),
        ("s3", "bucket"): (arn("s3", pattern, region=False, account=False),),
        ("s3", "object"): (
            arn(
                "s3",
                f"cdk-{place.qualifier}-assets-{place.account}-{place.region}/*",
                region=False,
                account=False,
            ),
        ),
        ("scheduler", "schedule"): (arn("scheduler", f"schedule/{pattern}/*"),),
        ("scheduler", "schedule-group"): (arn("scheduler", f"schedule-group/{pattern}"),),
        ("secretsmanager", "secret"): (arn("secretsmanager", f"secret:{pattern}"),),
        ("ses", "configuration-set"): tuple(arn("ses", f"configuration-set/{name}") for name in sets),
        ("sms-voice", "configurationset"): tuple(
            arn("sms-voice", f"configuration-set/{name}") for name in sets
        ),
        ("sns", "topic"): (arn("sns", pattern),),
        ("sqs", "queue"): (arn("sqs", pattern),),
        ("ssm", "parameter"): (arn("ssm", f"parameter/{group}/*"),),
        ("ssm", "bootstrap"): (arn("ssm", f"parameter/cdk-bootstrap/{place.qualifier}/version"),),
    }


_LOGS = "The delivery of an API's access log is set up for the account, not for a resource."
ON_EVERYTHING = {
    "ec2:Describe*": "EC2 cannot restrict lists of subnets and security groups.",
    "kms:CreateKey": "A key has no name before it exists.",
    "kms:ListAliases": "The action lists all aliases of the account.",
    "lambda:CreateEventSourceMapping": "A mapping has no name; a condition restricts it to our functions.",
    "logs:*LogDeliver*": _LOGS,
    "logs:Describe*": "CloudWatch Logs cannot restrict lists of the account's groups and policies.",
    "logs:PutResourcePolicy": _LOGS,
    "secretsmanager:GetRandomPassword": "It generates a password and stores nothing.",
    "sms-voice:CreateConfigurationSet": "A configuration set has no ARN before it exists.",
    "ses:DescribeConfigurationSet": "An action of SES's first API, which has no resources; it only reads.",
}
"""Actions that IAM cannot restrict to a resource, as patterns, with the reason why all resources are
allowed."""


def statements(needed: Mapping[str, Iterable[str]], place: Place) -> list[Statement]:
    """Return the statements that allow the actions `needed`, by resource type, in `place`, and one that
    denies changes of the deploying roles. Raises UnscopedError."""
    scopes = _scopes(place)
    together: dict[tuple[tuple[str, ...], Conditions], list[str]] = {}
    # A deployment reads the version of the bootstrap with ssm:GetParameters.
    for action in sorted({*chain.from_iterable(needed.values()), "ssm:GetParameters"}):
        resources = _resources(action, scopes)
        together.setdefault((resources, conditions_of(action, place)), []).append(action)
    allowed = [Statement(*scope, tuple(actions)) for scope, actions in together.items()]
    # A deployment may not change the roles of the stack `deploy`.
    deployers = place.arn("iam", f"role/mailroom-{place.stage}-deploy*", region=False)
    return [*sorted(allowed), Statement((deployers,), (), ("iam:*",), denied=True)]


_KINDS = {
    "apigateway": ("apis",),
    "iam:CreateServiceLinkedRole": ("service-role",),
    "ssm:GetParameters": ("parameter", "bootstrap"),
}
"""Kinds of resources that override the kinds of IAM, for actions or services for which IAM has too many kinds
or too coarse ones."""


def _resources(action: str, scopes: Mapping[tuple[str, str], tuple[str, ...]]) -> tuple[str, ...]:
    service = action.partition(":")[0]
    kinds = resource_kinds(action)
    kinds = _KINDS.get(action, _KINDS.get(service, kinds))
    arns = [arn for kind in kinds for arn in scopes.get((service, kind), ())]
    if arns:
        return tuple(dict.fromkeys(arns))
    if not kinds and any(fnmatchcase(action, pattern) for pattern in ON_EVERYTHING):
        return ("*",)
    raise UnscopedError(
        f"{action}: no rule restricts its resources ({', '.join(kinds) or 'IAM has none'}); add a scope to "
        "stacks/mailroom_stacks/deploy_policy/scopes.py, or its reason to ON_EVERYTHING."
    )
