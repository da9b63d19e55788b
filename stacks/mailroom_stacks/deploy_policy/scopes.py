"""What each action is held to: to the stage's own names wherever IAM can tell them, else by a condition."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import chain

from mailroom_stacks.deploy_policy.actions import resource_kinds
from mailroom_stacks.deploy_policy.document import Conditions, Statement


class UnscopedError(Exception):
    """An action that these tables do not know how to hold to the stage; its text says which."""


@dataclass(frozen=True)
class Place:
    """Where a stage is, and by which names IAM knows what is its own."""

    stage: str
    account: str = "*"
    region: str = "*"
    partition: str = "aws"
    qualifier: str = "hnb659fds"
    configuration_sets: tuple[str, ...] = ()
    """SES's and the SMS service's, which may be named freely."""
    passed_to: tuple[str, ...] = ()
    """The services that the stage's roles trust."""
    key_tags: tuple[tuple[str, str], ...] = ()
    """The tags by which a key of the stage is known; without any, no right to a key is given."""
    boundary: str | None = None
    """The name of the managed policy that bounds every role."""

    def arn(self, service: str, resource: str, *, region: bool = True, account: bool = True) -> str:
        """The ARN of a resource, its place filled in."""
        place = f"{self.region if region else ''}:{self.account if account else ''}"
        return f"arn:{self.partition}:{service}:{place}:{resource}"

    @property
    def own(self) -> str:
        """The pattern of the stage's names."""
        return f"mailroom-{self.stage}-*"


_MADE_BY_AWS = ("ops.apigateway.amazonaws.com",)
"""Services whose linked roles a deployment may make; AWS writes what is in them."""
_MAPPING = ("lambda:*EventSourceMapping",)
_KEY = ("kms:Disable*", "kms:EnableKey", "kms:Put*", "kms:Schedule*", "kms:Untag*", "kms:Update*Desc*")
"""What changes a key that exists. Not what CloudFormation calls right after CreateKey: it reads the key and
turns rotation on, which harms no foreign one, and a tag may take five minutes to count
(https://docs.aws.amazon.com/kms/latest/developerguide/tag-authorization.html)."""
_BOUNDED = ("iam:CreateRole", "iam:PutRolePolicy", "iam:PutRolePermissionsBoundary")


def conditions_of(action: str, place: Place) -> Conditions:
    """Operators, keys and values, all of which have to hold; most actions need none. Raises UnscopedError."""

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
        # Where no account is pinned the ARN holds a `*`, which StringEquals would take at its word.
        return (("ArnLike", "iam:PermissionsBoundary", (bound,)),)
    if any_of(_KEY):
        return _tagged("StringEquals", "aws:ResourceTag", action, place)
    if action == "kms:TagResource":
        # A change of other tags names those alone.
        return _tagged("StringEqualsIfExists", "aws:RequestTag", action, place)
    return ()


def _tagged(operator: str, key: str, action: str, place: Place) -> Conditions:
    if not place.key_tags:
        raise UnscopedError(
            f"{action}: the stage's keys have no tag `stage` to be held by; add it to deployment.tags."
        )
    return tuple((operator, f"{key}/{tag}", (value,)) for tag, value in place.key_tags)


def _scopes(place: Place) -> Mapping[tuple[str, str], tuple[str, ...]]:
    own, arn = place.own, place.arn
    group = f"mailroom-{place.stage}"
    sets = place.configuration_sets
    return {
        # An API and a mapping are known by ids that AWS gives them.
        ("apigateway", "apis"): (
            arn("apigateway", "/apis", account=False),
            arn("apigateway", "/apis/*", account=False),
            arn("apigateway", "/tags/*", account=False),
        ),
        ("cloudwatch", "alarm"): (arn("cloudwatch", f"alarm:{own}"),),
        ("cloudwatch", "dashboard"): (
            arn("cloudwatch", f"dashboard/{group}", region=False),
            arn("cloudwatch", f"dashboard/{own}", region=False),
        ),
        ("codedeploy", "application"): (arn("codedeploy", f"application:{own}"),),
        ("codedeploy", "deploymentconfig"): (arn("codedeploy", "deploymentconfig:CodeDeployDefault.*"),),
        ("codedeploy", "deploymentgroup"): (arn("codedeploy", f"deploymentgroup:{own}"),),
        ("dynamodb", "table"): (arn("dynamodb", f"table/{own}"),),
        ("events", "rule-on-default-event-bus"): (arn("events", f"rule/{own}"),),
        ("iam", "service-role"): (arn("iam", "role/aws-service-role/*", region=False),),
        ("iam", "role"): (arn("iam", f"role/{own}", region=False),),
        ("kms", "alias"): (arn("kms", f"alias/{own}"),),
        ("kms", "key"): (arn("kms", "key/*"),),
        ("lambda", "eventsourcemapping"): (arn("lambda", "event-source-mapping:*"),),
        ("lambda", "function"): (arn("lambda", f"function:{own}"),),
        ("lambda", "function alias"): (arn("lambda", f"function:{own}"),),
        ("lambda", "function version"): (arn("lambda", f"function:{own}"),),
        ("logs", "log-group"): (
            arn("logs", f"log-group:/aws/lambda/{own}"),
            arn("logs", f"log-group:/aws/vendedlogs/{own}"),
        ),
        ("s3", "bucket"): (arn("s3", own, region=False, account=False),),
        ("s3", "object"): (
            arn(
                "s3",
                f"cdk-{place.qualifier}-assets-{place.account}-{place.region}/*",
                region=False,
                account=False,
            ),
        ),
        ("scheduler", "schedule"): (arn("scheduler", f"schedule/{own}/*"),),
        ("scheduler", "schedule-group"): (arn("scheduler", f"schedule-group/{own}"),),
        ("secretsmanager", "secret"): (arn("secretsmanager", f"secret:{own}"),),
        ("ses", "configuration-set"): tuple(arn("ses", f"configuration-set/{name}") for name in sets),
        ("sms-voice", "configurationset"): tuple(
            arn("sms-voice", f"configuration-set/{name}") for name in sets
        ),
        ("sns", "topic"): (arn("sns", own),),
        ("sqs", "queue"): (arn("sqs", own),),
        ("ssm", "parameter"): (arn("ssm", f"parameter/{group}/*"),),
        ("ssm", "bootstrap"): (arn("ssm", f"parameter/cdk-bootstrap/{place.qualifier}/version"),),
    }


_LOGS = "The delivery of an API's access log belongs to the account, and so does the right to set it up."
ON_EVERYTHING = {
    "codedeploy:StopDeployment": "A deployment is known by an id that CodeDeploy gives it.",
    "ec2:Describe*": "EC2 lists subnets and security groups for all or for nobody.",
    "kms:CreateKey": "A key has no name before it is there.",
    "kms:ListAliases": "Aliases are listed all together.",
    "lambda:CreateEventSourceMapping": "A mapping has no name; a condition holds it to our functions.",
    "logs:*LogDeliver*": _LOGS,
    "logs:Describe*": "CloudWatch Logs lists groups and policies of the account for all or for nobody.",
    "logs:PutResourcePolicy": _LOGS,
    "secretsmanager:GetRandomPassword": "It makes a password and keeps nothing.",
    "sms-voice:CreateConfigurationSet": "A configuration set has no ARN before it is there.",
    "ses:DescribeConfigurationSet": "Of SES's first API, which knows no resources; it only reads.",
}
"""The actions for which IAM knows no resource, as patterns, and why the deployment takes them."""


def statements(needed: Mapping[str, Iterable[str]], place: Place) -> list[Statement]:
    """What the actions `needed`, by resource type, come to at `place`, and a denial that keeps the deploying
    roles out of reach. Raises UnscopedError."""
    scopes = _scopes(place)
    together: dict[tuple[tuple[str, ...], Conditions], list[str]] = {}
    # The last reads the bootstrap's version.
    for action in sorted({*chain.from_iterable(needed.values()), "ssm:GetParameters"}):
        resources = _resources(action, scopes)
        together.setdefault((resources, conditions_of(action, place)), []).append(action)
    allowed = [Statement(*held, tuple(actions)) for held, actions in together.items()]
    # The roles of the stack `deploy`, which no deployment may touch.
    deployers = place.arn("iam", f"role/mailroom-{place.stage}-deploy*", region=False)
    return [*sorted(allowed), Statement((deployers,), (), ("iam:*",), denied=True)]


_KINDS = {
    "apigateway": ("apis",),
    "iam:CreateServiceLinkedRole": ("service-role",),
    "ssm:GetParameters": ("parameter", "bootstrap"),
}
"""Where IAM's own kinds are too many, or too coarse."""


def _resources(action: str, scopes: Mapping[tuple[str, str], tuple[str, ...]]) -> tuple[str, ...]:
    service = action.partition(":")[0]
    kinds = resource_kinds(action)
    kinds = _KINDS.get(action, _KINDS.get(service, kinds))
    found = [arn for kind in kinds for arn in scopes.get((service, kind), ())]
    if found:
        return tuple(dict.fromkeys(found))
    if not kinds and any(fnmatchcase(action, pattern) for pattern in ON_EVERYTHING):
        return ("*",)
    raise UnscopedError(
        f"{action}: no scope is known for its resources ({', '.join(kinds) or 'IAM knows none'}); add one to "
        "stacks/mailroom_stacks/deploy_policy/scopes.py, or its reason to ON_EVERYTHING."
    )
