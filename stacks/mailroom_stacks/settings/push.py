"""Settings of push, besides those in `channels.push`."""

from typing import Annotated

from pydantic import Field

from mailroom_stacks.settings.sections import Section

_SNS = r"arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}"
_NAME = r"^[a-z][a-z0-9_-]{0,31}$"
# Platforms for which Mailroom writes payloads: FCM and Apple.
_APPLICATION = rf"^{_SNS}:app/(GCM|APNS|APNS_SANDBOX)/[A-Za-z0-9_.-]{{1,256}}$"
_TOPIC = rf"^{_SNS}:[A-Za-z0-9_-]{{1,256}}$"


class Push(Section):
    """Targets of push messages: platform applications and topics of SNS, which are created outside of
    Mailroom. A platform application contains the credentials of FCM or Apple."""

    platform_applications: dict[
        Annotated[str, Field(pattern=_NAME)], Annotated[str, Field(pattern=_APPLICATION)]
    ] = Field(default_factory=dict)
    """ARNs of platform applications, by the names that messages use in `platform`."""
    topics: tuple[Annotated[str, Field(pattern=_TOPIC)], ...] = ()
    """ARNs of the topics to which messages may be sent."""

    @property
    def arns(self) -> dict[str, str]:
        """ARNs of platform applications and topics, by the keys of their settings."""
        applications = self.platform_applications.items()
        return {
            **{f"push.platform_applications.{name}": arn for name, arn in applications},
            **{f"push.topics.{index}": arn for index, arn in enumerate(self.topics)},
        }
