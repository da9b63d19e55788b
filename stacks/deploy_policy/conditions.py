"""What holds an action to the stage where its resource's name does not."""

from collections.abc import Iterable
from fnmatch import fnmatchcase

from stacks.deploy_policy.document import Conditions
from stacks.deploy_policy.place import Place, UnscopedError

_MADE_BY_AWS = ("management.chatbot.amazonaws.com", "ops.apigateway.amazonaws.com")
"""Whose service-linked roles a deployment may make; AWS writes what is in them."""
_MAPPING = ("lambda:*EventSourceMapping",)
_KEY = (
    "kms:Disable*",
    "kms:EnableKey",
    "kms:Put*",
    "kms:Schedule*",
    "kms:Untag*",
    "kms:Update*Desc*",
)
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
