"""Push notifications by Amazon SNS: platform endpoints and topics."""

import time
from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError
from msgspec import Struct

from mailroom.aws import clients
from mailroom.channels.provider import Refusal, asked
from mailroom.channels.push.contract import ENDPOINT, Push, push_to
from mailroom.channels.push.payload import MAX_TTL, PLATFORMS, attributes_of, message_for
from mailroom.channels.push.sns_errors import existing_endpoint, refusal_to_publish, refusal_to_register
from mailroom.clock import Clock, epoch
from mailroom.environment import PushSender
from mailroom.errors import Invalid
from mailroom.message.outcome import Evidence, Facts, Outcome, Sent, Unknowable

if TYPE_CHECKING:
    from types_boto3_sns import SNSClient


class PushRequest(Struct, frozen=True):
    """The arguments of `publish`; or why there will be none, where a token's endpoint was refused."""

    arguments: dict[str, Any]
    facts: Facts = {}
    refusal: Refusal | None = None


class SnsPush:
    """SNS has no idempotency for pushes and no look-up; a second one replaces the first on the device."""

    provider = "sns"
    account = None

    def __init__(
        self,
        client: "SNSClient",
        *,
        applications: Mapping[str, str],
        topics: Sequence[str],
        region: str = "",
        clock: Clock = time.time,
    ) -> None:
        """`applications` are the ARNs of platform applications by the names that items call them by; `region`
        is the client's own ("": not known here)."""
        self.contract = push_to(applications)
        self._client = client
        self._applications = dict(applications)
        self._topics = topics
        self._region = region
        self._clock = clock

    @classmethod
    def of(cls, settings: PushSender) -> "SnsPush":
        """The adapter that a function's settings describe."""
        client = clients.sns(settings.submit_seconds)
        return cls(
            client,
            applications=settings.platform_applications,
            topics=settings.topics,
            region=client.meta.region_name,
        )

    def prepare(self, message: Push) -> PushRequest:
        """The whole request. A token becomes its endpoint, last of all and as often as one likes."""
        arguments = {
            "Message": message_for(message, self._platforms(message)),
            "MessageStructure": "json",
            "MessageAttributes": attributes_of(message, self._seconds_left(message)),
        }
        if message.is_token:
            return self._registered(message, arguments)
        to = "TargetArn" if ENDPOINT.fullmatch(message.recipient) else "TopicArn"
        return PushRequest({to: message.recipient, **arguments})

    def submit(self, request: PushRequest) -> Outcome:
        """Hand it to SNS. A 5xx answer or none at all raises: then nobody knows."""
        if request.refusal is not None:
            return request.refusal
        to_endpoint = "TargetArn" in request.arguments
        said = asked(
            "SNS",
            lambda: self._client.publish(**request.arguments)["MessageId"],
            lambda error: refusal_to_publish(error, to_endpoint=to_endpoint),
        )
        return Sent(said, request.facts) if isinstance(said, str) else said

    def look_up(self, message: Push, since: int, known: Container[str]) -> Evidence:  # noqa: ARG002 - no list call
        """SNS cannot tell."""
        return Unknowable()

    def _platforms(self, message: Push) -> Sequence[str]:
        """The platforms that it may reach. Raises Invalid for what is not the stage's."""
        if message.is_token:
            return (_platform(self._applications[message.application]),)
        self._check_region(message.recipient)
        endpoint = ENDPOINT.fullmatch(message.recipient)
        if endpoint is None:
            if message.recipient not in self._topics:
                raise Invalid("to", "is none of this stage's topics; ask for it to be added, or use another")
            return tuple(PLATFORMS)
        application = f"{endpoint['start']}app/{endpoint['platform']}/{endpoint['name']}"
        if application not in self._applications.values():
            raise Invalid("to", "is an endpoint of no platform application of this stage; use another")
        return (endpoint["platform"],)

    def _check_region(self, arn: str) -> None:
        """Raise Invalid for an ARN of another region: SNS would call it wrong, or know of none."""
        region = arn.split(":")[3]
        if self._region and region != self._region:
            here = f"SNS publishes in its own alone, here {self._region}"
            raise Invalid("to", f"is of region {region}, and {here}; use one of there")

    def _registered(self, message: Push, arguments: dict[str, Any]) -> PushRequest:
        endpoint = asked("SNS", lambda: self._endpoint(message), refusal_to_register)
        if not isinstance(endpoint, str):
            return PushRequest({}, refusal=endpoint)
        return PushRequest({"TargetArn": endpoint, **arguments}, {"endpoint_arn": endpoint})

    def _endpoint(self, message: Push) -> str:
        application = self._applications[message.application]
        try:
            reply = self._client.create_platform_endpoint(
                PlatformApplicationArn=application, Token=message.recipient
            )
        except ClientError as error:
            existing = existing_endpoint(error)
            if existing is None:
                raise
            return existing
        return reply["EndpointArn"]

    def _seconds_left(self, message: Push) -> int | None:
        if message.expires_at is None:
            return None
        return int(max(1, min(MAX_TTL, epoch(message.expires_at) - self._clock())))


def _platform(application: str) -> str:
    return application.rsplit(":app/", 1)[1].split("/", 1)[0]
