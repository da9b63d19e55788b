"""What a push notification looks like to each platform, in SNS's words.

Documented at https://docs.aws.amazon.com/sns/latest/dg/sns-send-custom-platform-specific-payloads-mobile-devices.html,
sns-fcm-v1-payloads.html, sns-message-attributes.html (reserved attributes) and sns-ttl.html.
"""

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

from mailroom.channels.push.contract import Push
from mailroom.errors import Invalid
from mailroom.message.message import Key, encode

MAX_BYTES = 4096
"""FCM's and Apple's limit of one notification."""
MAX_TTL = 2_419_200
"""FCM's longest, four weeks, and SNS's default."""

_ATTRIBUTE = "AWS.SNS.MOBILE."
_TTLS = ("FCM.TTL", "APNS.TTL", "APNS_SANDBOX.TTL")

Json = dict[str, Any]


def identity(key: Key) -> str:
    """The same for every try at a message: on the device the later one takes the place of the earlier.

    32 characters: Apple takes 64 bytes.
    """
    return hashlib.sha256(f"{key.event_type}\0{key.id}".encode()).hexdigest()[:32]


def message_for(push: Push, platforms: Iterable[str]) -> str:
    """SNS's `Message`: a payload for each of the platforms, and a text for whatever else a topic may have.

    Raises Invalid, naming the largest part, where one is too large.
    """
    payloads = {name: encode(PLATFORMS[name](push)) for name in platforms}
    for name, payload in payloads.items():
        size = len(payload.encode())
        if size > MAX_BYTES:
            raise Invalid(
                _largest(push), f"makes a payload of {size} bytes for {name}; use at most {MAX_BYTES}"
            )
    return encode({"default": push.body or push.title or encode(push.data), **payloads})


def attributes_of(push: Push, seconds_left: int | None) -> dict[str, Json]:
    """SNS's `MessageAttributes`: Apple's headers, and for how long a platform may try."""
    values = {
        "APNS.COLLAPSE_ID": identity(push.key),
        "APNS.PUSH_TYPE": "background" if push.silent else "alert",
        # Apple refuses 10 for what shows nothing.
        "APNS.PRIORITY": "5" if push.silent else "10",
    }
    if seconds_left is not None:
        values |= dict.fromkeys(_TTLS, str(seconds_left))
    return {_ATTRIBUTE + name: {"DataType": "String", "StringValue": value} for name, value in values.items()}


def _shown(push: Push) -> dict[str, str]:
    return {name: text for name, text in (("title", push.title), ("body", push.body)) if text}


def _fcm(push: Push) -> Json:
    id_ = identity(push.key)
    # Its iOS apps get Apple's headers by Google, not by SNS's attributes.
    apns: Json = {"headers": {"apns-collapse-id": id_}}
    android: Json = {"collapse_key": id_}
    message: Json = {"android": android, "apns": apns}
    if push.silent:
        apns["headers"] |= {"apns-push-type": "background", "apns-priority": "5"}
        apns["payload"] = {"aps": {"content-available": 1}}
    else:
        message["notification"] = _shown(push)
        # FCM's collapse key is for what waits at Google; what is shown already goes by its tag.
        android |= {"priority": "high", "notification": {"tag": id_}}
    if push.data:
        message["data"] = {name: _string(value) for name, value in push.data.items()}
    return {"fcmV1Message": {"message": message}}


def _apns(push: Push) -> Json:
    aps: Json = {"content-available": 1} if push.silent else {"alert": _shown(push)}
    return {"aps": aps, **push.data}


PLATFORMS: dict[str, Callable[[Push], Json]] = {"GCM": _fcm, "APNS": _apns, "APNS_SANDBOX": _apns}
"""The payloads by the platforms' names in ARNs and in SNS's `Message`. GCM is FCM's old name."""


def _string(value: Any) -> str:
    return value if isinstance(value, str) else encode(value)


def _largest(push: Push) -> str:
    sizes = {
        "title": len((push.title or "").encode()),
        "body": len((push.body or "").encode()),
        "data": len(encode(push.data).encode()),
    }
    return max(sizes, key=lambda name: sizes[name])
