"""Push notifications by Amazon SNS: platform endpoints and topics."""

import hashlib
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from mailroom.aws import clients
from mailroom.channels.push.contract import ENDPOINT, Push, push_to
from mailroom.clock import Clock
from mailroom.delivery.adapter import WithoutLookUp, code_of, not_sent, reason_of, refused
from mailroom.environment import PushSender
from mailroom.errors import Invalid
from mailroom.message.message import Key, encode, seconds_left
from mailroom.message.outcome import Facts, NotReady, Outcome, Refusal, Rejected, Sent, table

if TYPE_CHECKING:
    from types_boto3_sns import SNSClient

MAX_BYTES = 4096
"""Maximum number of bytes of the payload for one platform, which is the limit of FCM and of Apple."""
VALID_SECONDS = (1, 2_419_200)
"""Minimum and maximum time to live of a push at a platform, in seconds. The maximum, four weeks, is the limit
of FCM and the default of SNS."""

_ATTRIBUTE = "AWS.SNS.MOBILE."
_TTLS = ("FCM.TTL", "APNS.TTL", "APNS_SANDBOX.TTL")

Json = dict[str, Any]


def identity(key: Key) -> str:
    """Return the collapse id of a message. All tries of a message have the same collapse id, so that on the
    device a later push replaces an earlier one.

    The collapse id has 32 characters; Apple allows 64 bytes.
    """
    return hashlib.sha256(f"{key.event_type}\0{key.id}".encode()).hexdigest()[:32]


def message_for(push: Push, platforms: Iterable[str], expires: int | None = None) -> str:
    """Return the parameter `Message` of SNS's call `publish`: a payload for each of the platforms, and a
    default text for other subscribers of a topic. `expires`: time in epoch seconds after which FCM and Apple
    no longer try to deliver the push.

    Raises Invalid if a payload is too large; the error names the attribute that takes the most bytes.
    """
    payloads = {name: encode(PLATFORMS[name](push, expires)) for name in platforms}
    for name, payload in payloads.items():
        size = len(payload.encode())
        if size > MAX_BYTES:
            raise Invalid(
                _largest(push), f"makes a payload of {size} bytes for {name}; use at most {MAX_BYTES}"
            )
    return encode({"default": push.body or push.title or encode(push.data), **payloads})


def attributes_of(push: Push, valid: int | None) -> dict[str, Json]:
    """Return the parameter `MessageAttributes` of SNS's call `publish`: headers for Apple, and the time to
    live `valid`, in seconds, for each platform."""
    values = {
        "APNS.COLLAPSE_ID": identity(push.key),
        "APNS.PUSH_TYPE": "background" if push.silent else "alert",
        # A silent push has priority 5, because Apple refuses priority 10 for it.
        "APNS.PRIORITY": "5" if push.silent else "10",
    }
    if valid is not None:
        values |= dict.fromkeys(_TTLS, str(valid))
    return {_ATTRIBUTE + name: {"DataType": "String", "StringValue": value} for name, value in values.items()}


def _shown(push: Push) -> dict[str, str]:
    return {name: text for name, text in (("title", push.title), ("body", push.body)) if text}


def _fcm(push: Push, expires: int | None) -> Json:
    id_ = identity(push.key)
    # For iOS apps that use FCM, Google sends these headers to Apple, and the attributes of the call `publish`
    # are not used. Without `apns-expiration`, a push to them expires after 30 days:
    # https://firebase.google.com/docs/reference/fcm/rest/v1/projects.messages#ApnsConfig (2026-11-29).
    apns: Json = {"headers": {"apns-collapse-id": id_}}
    if expires is not None:
        apns["headers"]["apns-expiration"] = str(expires)
    android: Json = {"collapse_key": id_}
    message: Json = {"android": android, "apns": apns}
    if push.silent:
        apns["headers"] |= {"apns-push-type": "background", "apns-priority": "5"}
        apns["payload"] = {"aps": {"content-available": 1}}
    else:
        message["notification"] = _shown(push)
        # The collapse key makes a push replace an earlier push that still waits at Google. The tag makes a
        # push replace an earlier push that is displayed on the device.
        android |= {"priority": "high", "notification": {"tag": id_}}
    if push.data:
        data = push.data.items()
        message["data"] = {name: value if isinstance(value, str) else encode(value) for name, value in data}
    return {"fcmV1Message": {"message": message}}


def _apns(push: Push, _expires: int | None) -> Json:
    aps: Json = {"content-available": 1} if push.silent else {"alert": _shown(push)}
    return {"aps": aps, **push.data}


PLATFORMS: dict[str, Callable[[Push, int | None], Json]] = {"GCM": _fcm, "APNS": _apns, "APNS_SANDBOX": _apns}
"""Functions that create a payload, by the platform's name in ARNs and in the parameter `Message`. GCM is the
old name of FCM."""


def _largest(push: Push) -> str:
    sizes = {
        "title": len((push.title or "").encode()),
        "body": len((push.body or "").encode()),
        "data": len(encode(push.data).encode()),
    }
    return max(sizes, key=lambda name: sizes[name])


class PushRequest(Struct, frozen=True):
    """Request to SNS to send a push."""

    arguments: dict[str, Any]
    """Arguments of SNS's call `publish`."""
    facts: Facts = {}
    """Attributes to be added to the ledger item when SNS has accepted the push."""


class SnsPush(WithoutLookUp):
    """Adapter of SNS, which supports neither idempotency keys nor look-ups of sent messages. If a push is
    sent twice, the second push replaces the first one on the device."""

    provider = "sns"

    def __init__(
        self,
        client: "SNSClient",
        *,
        applications: Mapping[str, str],
        topics: Sequence[str],
        region: str = "",
        clock: Clock = time.time,
    ) -> None:
        """Create the adapter. `applications` are the ARNs of the stage's platform applications, by the names
        that items use. `region` is the client's AWS region, empty if the region is unknown."""
        self.contract = push_to(applications)
        self._client = client
        self._applications = dict(applications)
        self._topics = topics
        self._region = region
        self._clock = clock

    @classmethod
    def of(cls, settings: PushSender) -> "SnsPush":
        client = clients.sns(settings.submit_seconds)
        return cls(
            client,
            applications=settings.platform_applications,
            topics=settings.topics,
            region=client.meta.region_name,
        )

    def prepare(self, message: Push) -> PushRequest:
        """Create the request. For a device token, let SNS create an endpoint; creating an endpoint again is
        harmless. Raises Invalid, or NotReady if SNS does not create the endpoint."""
        timestamp = self._clock()
        valid = seconds_left(message.expiry(), timestamp, VALID_SECONDS)
        expires = None if valid is None else int(timestamp) + valid
        arguments = {
            "Message": message_for(message, self._platforms(message), expires),
            "MessageStructure": "json",
            "MessageAttributes": attributes_of(message, valid),
        }
        if message.is_token:
            return self._registered(message, arguments)
        to = "TargetArn" if ENDPOINT.fullmatch(message.recipient) else "TopicArn"
        return PushRequest({to: message.recipient, **arguments})

    def submit(self, request: PushRequest) -> Outcome:
        """Submit the push to SNS. Raises OutcomeUnknown for a 5xx response, or without a response."""
        try:
            reply = self._client.publish(**request.arguments)
        except (ClientError, BotoCoreError) as error:
            to_endpoint = "TargetArn" in request.arguments
            return not_sent("SNS", error, partial(refusal_to_publish, to_endpoint=to_endpoint))
        return Sent(reply["MessageId"], request.facts)

    def _platforms(self, message: Push) -> Sequence[str]:
        """Return the platforms that a push may be sent to. Raises Invalid if the stage lacks the topic or the
        platform application that the push names."""
        if message.is_token:
            return (self._applications[message.application].rpartition(":app/")[2].partition("/")[0],)
        self._check_region(message.recipient)
        endpoint = ENDPOINT.fullmatch(message.recipient)
        if endpoint is None:
            if message.recipient not in self._topics:
                raise Invalid(
                    "to", "is not one of this stage's topics; ask an operator to add it, or use another topic"
                )
            return tuple(PLATFORMS)
        application = f"{endpoint['start']}app/{endpoint['platform']}/{endpoint['name']}"
        if application not in self._applications.values():
            raise Invalid(
                "to", "is an endpoint of an application that this stage lacks; use another endpoint"
            )
        return (endpoint["platform"],)

    def _check_region(self, arn: str) -> None:
        """Raise Invalid for an ARN of another region, to which SNS does not publish."""
        region = arn.split(":")[3]
        if self._region and region != self._region:
            raise Invalid("to", f"is in region {region}, but the stage is not; use an ARN in {self._region}")

    def _registered(self, message: Push, arguments: dict[str, Any]) -> PushRequest:
        try:
            endpoint = endpoint_of(self._client, self._applications[message.application], message.recipient)
        except (ClientError, BotoCoreError) as error:
            raise NotReady(not_sent("SNS", error, refusal_of)) from None
        return PushRequest({"TargetArn": endpoint, **arguments}, {"endpoint_arn": endpoint})


_EXISTS = re.compile(r"Endpoint (arn:aws[a-z-]*:sns:\S+) already exists with the same [Tt]oken")
_MODEL = "botocore 1.44.5, model of sns"
_DATE = "2026-11-29"
REFUSALS = table(
    _MODEL,
    _DATE,
    ("EndpointDisabled", "destination", "Exception error indicating endpoint disabled.", "gone"),
    ("PlatformApplicationDisabled", "account", "Exception error indicating platform application disabled."),
    ("AuthorizationError", "account", "The user has been denied access to the requested resource."),
    ("InvalidSecurity", "account", "The credential signature isn't valid."),
    ("KMSDisabled", "account", "The specified Amazon Web Services KMS key isn't enabled."),
    ("KMSInvalidState", "account", "The state of the specified resource isn't valid for this request."),
    ("KMSNotFound", "account", "The specified entity or resource can't be found."),
    ("KMSOptInRequired", "account", "The access key ID needs a subscription for the service."),
    ("KMSAccessDenied", "account", "The ciphertext references a key that doesn't exist."),
    ("KMSThrottling", "throttled", "The request was denied due to request throttling."),
    (
        "Throttled",
        "throttled",
        "The rate at which requests have been submitted for this action exceeds the limit.",
    ),
    ("NotFound", "account", "The requested resource does not exist."),
    ("InvalidParameter", "account", "A request parameter does not comply with the associated constraints."),
    (
        "ParameterValueInvalid",
        "account",
        "A request parameter does not comply with the associated constraints.",
    ),
    ("Validation", "account", "A parameter in the request is invalid."),
)
"""Documented refusals, by code. `TEXTS` has the texts about parameters that come from the item."""
TEXTS = (
    table(
        "https://github.com/react-native-device-info/react-native-device-info/issues/1123",
        _DATE,
        (
            "Invalid parameter: Token",
            "destination",
            "Invalid parameter: Token Reason: iOS device tokens must be no more than 400 hexadecimal "
            "characters",
        ),
    )
    | table(
        "https://github.com/yegor256/rultor/issues/56",
        _DATE,
        ("Invalid parameter: Message too long", "message", "Invalid parameter: Message too long"),
    )
    | table(
        "https://github.com/localstack/localstack",
        _DATE,
        (
            "Invalid parameter: TargetArn Reason: No endpoint found",
            "destination",
            "Invalid parameter: TargetArn Reason: No endpoint found for the target arn specified",
            "gone",
        ),
    )
)


def endpoint_of(client: "SNSClient", application: str, token: str) -> str:
    """Return the ARN of a token's endpoint, which SNS creates if the token has none. An endpoint that SNS has
    disabled stays disabled. Raises botocore's errors."""
    try:
        return client.create_platform_endpoint(PlatformApplicationArn=application, Token=token)["EndpointArn"]
    except ClientError as error:
        # The token may have an endpoint with other attributes, which Mailroom must not change.
        existing = _EXISTS.search(error.response["Error"].get("Message", ""))
        if existing is None:
            raise
        return existing[1]


def refusal_to_publish(error: ClientError, *, to_endpoint: bool) -> Refusal:
    """Classify an error response to `publish` which proves that the push was not sent. A disabled or deleted
    endpoint receives no pushes until its app registers again, so the recipient is reported as gone."""
    if code_of(error) == "NotFound" and to_endpoint:
        return Rejected(reason_of(error), gone=True)
    return refusal_of(error)


def refusal_of(error: ClientError) -> Refusal:
    """Classify an error response of SNS by the tables; its text decides before its code."""
    code, text = code_of(error), error.response["Error"].get("Message", "")
    beginnings = (row for row in TEXTS.values() if text.startswith(row.code))
    row = next(beginnings, REFUSALS.get(code))
    return refused(error, reason_of(error)) if row is None else row.refusal(reason_of(error))
