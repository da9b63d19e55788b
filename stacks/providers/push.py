"""What sending pushes by SNS needs."""

import json

from aws_cdk import Stack

from stacks.constructs.grants import Grant
from stacks.providers.around import Around
from stacks.providers.needs import Needs


def needs(_: Stack, around: Around) -> Needs:
    """The platform applications' endpoints and the topics, and making an endpoint for a token."""
    section = around.settings.push
    if section is None:  # then there is no row either: see the rules
        return Needs()
    return Needs(
        grants=[
            *_to_endpoints(sorted(section.platform_applications.values())),
            *([Grant(["sns:Publish"], section.topics)] if section.topics else []),
            around.find_unwilling(),
            around.mark_suppressed(),
        ],
        environment={
            **around.unwilling(),
            "PLATFORM_APPLICATIONS": json.dumps(section.platform_applications),
            "TOPICS": json.dumps(section.topics),
        },
    )


def _to_endpoints(applications: list[str]) -> list[Grant]:
    if not applications:
        return []
    return [
        Grant(["sns:CreatePlatformEndpoint"], applications),
        Grant(
            ["sns:Publish"],
            [each.replace(":app/", ":endpoint/", 1) + "/*" for each in applications],
            wildcard="SNS names the endpoints below each platform application of the stage's.",
        ),
    ]
