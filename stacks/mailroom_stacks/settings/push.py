"""Settings of push beside its row, and its rules."""

from typing import Annotated

from pydantic import Field

from mailroom_stacks.settings.sections import Section

_SNS = r"arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}"
_NAME = r"^[a-z][a-z0-9_-]{0,31}$"
# Platforms for which Mailroom writes payloads: FCM and Apple.
_APPLICATION = rf"^{_SNS}:app/(GCM|APNS|APNS_SANDBOX)/[A-Za-z0-9_.-]{{1,256}}$"
_TOPIC = rf"^{_SNS}:[A-Za-z0-9_-]{{1,256}}$"


class Push(Section):
    """Targets of pushes: SNS's platform applications and topics, which have the credentials and are made
    outside of Mailroom."""

    platform_applications: dict[
        Annotated[str, Field(pattern=_NAME)], Annotated[str, Field(pattern=_APPLICATION)]
    ] = Field(default_factory=dict)
    """ARNs of platform applications, by the name that a message's `platform` may have."""
    topics: tuple[Annotated[str, Field(pattern=_TOPIC)], ...] = ()
    """ARNs of the topics that a message may go to."""

    @property
    def arns(self) -> dict[str, str]:
        """ARNs of both by the keys of their settings."""
        applications = self.platform_applications.items()
        return {
            **{f"push.platform_applications.{name}": arn for name, arn in applications},
            **{f"push.topics.{index}": arn for index, arn in enumerate(self.topics)},
        }
