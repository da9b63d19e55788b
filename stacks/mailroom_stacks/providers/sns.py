"""SNS: the permissions to publish push notifications."""

from mailroom.environment import PushSender
from mailroom_stacks.channels import ChannelsStack, Needs
from mailroom_stacks.constructs.grants import Grant


def needs(stack: ChannelsStack, _name: str) -> Needs:
    """Return the permissions to publish to endpoints of the platform applications and to topics, and to
    create an endpoint for a token."""
    section = stack.settings.push
    assert section is not None  # a validation rule rejects a channel without its section
    topics = [Grant(["sns:Publish"], section.topics)] if section.topics else []
    return Needs(
        [*_to_endpoints(sorted(section.platform_applications.values())), *topics],
        PushSender,
        {"platform_applications": section.platform_applications, "topics": section.topics},
    )


def _to_endpoints(applications: list[str]) -> list[Grant]:
    if not applications:
        return []
    return [
        Grant(["sns:CreatePlatformEndpoint"], applications),
        Grant(
            ["sns:Publish"],
            [arn.replace(":app/", ":endpoint/", 1) + "/*" for arn in applications],
            wildcard="SNS generates the names of the endpoints of the stage's platform applications.",
        ),
    ]
