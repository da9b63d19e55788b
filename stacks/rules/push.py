"""Rules of the push channel."""

from collections.abc import Iterator
from itertools import pairwise

from stacks.settings.push import Push


def broken_push(push: Push, region: str | None) -> Iterator[str]:
    """Rules of the section `push`, in the region that the stage is pinned to."""
    if not push.platform_applications and not push.topics:
        yield (
            "push.platform_applications: is empty, and so is topics, so a push may go nowhere; name one, or "
            "set push to null and remove channels.push."
        )
    for one, other in pairwise(sorted(push.platform_applications.values())):
        if one == other:
            # A token's mark in the suppression list goes by the application's name.
            yield f"push.platform_applications: {one!r} has two names; use one."
    if region is not None:
        yield from _elsewhere(push, region)


def _elsewhere(push: Push, region: str) -> Iterator[str]:
    """What no push would ever reach: SNS publishes to what is in its own region."""
    applications = {f"platform_applications.{name}": arn for name, arn in push.platform_applications.items()}
    topics = {f"topics.{at}": arn for at, arn in enumerate(push.topics)}
    for key, arn in {**applications, **topics}.items():
        its = arn.split(":")[3]
        if its != region:
            yield (
                f"push.{key}: is of region {its}, and SNS publishes in its own alone, which is "
                f"deployment.region {region}; name one of there."
            )
