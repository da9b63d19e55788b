"""What the push channel needs beside its row, and its rules."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated

from pydantic import Field

from mailroom_stacks.settings.sections import Section

_SNS = r"arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}"
_NAME = r"^[a-z][a-z0-9_-]{0,31}$"
# Those whose payloads are written: FCM's and Apple's.
_APPLICATION = rf"^{_SNS}:app/(GCM|APNS|APNS_SANDBOX)/[A-Za-z0-9_.-]{{1,256}}$"
_TOPIC = rf"^{_SNS}:[A-Za-z0-9_-]{{1,256}}$"


class Push(Section):
    """Where pushes may go: SNS's platform applications and topics, which hold the credentials and are made
    outside of Mailroom."""

    platform_applications: dict[
        Annotated[str, Field(pattern=_NAME)], Annotated[str, Field(pattern=_APPLICATION)]
    ] = Field(default_factory=dict)
    """The ARNs of platform applications, each under the name that a message's `platform` may have."""
    topics: tuple[Annotated[str, Field(pattern=_TOPIC)], ...] = ()
    """The ARNs of the topics that a message may go to."""


def push_faults(push: Push, region: str | None) -> Iterator[str]:
    """Rules of the section `push`, in the region that the stage is pinned to."""
    if not push.platform_applications and not push.topics:
        yield (
            "push.platform_applications: is empty, and so is topics, so no push may go anywhere; name "
            "one, or set push to null and remove channels.push."
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
                f"push.{key}: is in region {its}, and SNS publishes only in "
                f"deployment.region {region}; use an ARN in {region}."
            )
