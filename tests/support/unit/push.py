"""Push notifications, and an SNS that says what it is told."""

import json
from typing import Any

from mailroom.channels.push.contract import Push, push_to
from mailroom.channels.push.sns import SnsPush
from mailroom.message.message import parse
from tests.support.unit.shared import REGION, FakeClock, Item

_SNS = f"arn:aws:sns:{REGION}:123456789012"
ANDROID = f"{_SNS}:app/GCM/shop-android"
IOS = f"{_SNS}:app/APNS/shop-ios"
ENDPOINT = f"{_SNS}:endpoint/GCM/shop-android/0f5e8a3c-1b2d-3e4f-8a9b-0c1d2e3f4a5b"
IOS_ENDPOINT = f"{_SNS}:endpoint/APNS/shop-ios/1f5e8a3c-1b2d-3e4f-8a9b-0c1d2e3f4a5b"
TOPIC = f"{_SNS}:offers"
TOKEN = "cX1_y-2:APA91bHPRgkF3JUikC4ENAHEeMrd41Zxv3hVZjC9KtT8OvPVGJ-hQMRKRrZuJAEcl7B338qju59zJMjw2"
APPLICATIONS = {"android": ANDROID, "ios": IOS}


def push_item(**changes: Any) -> Item:
    """An item that is right; a change to `...` takes the attribute away."""
    base = {
        "id": "p-1",
        "event_type": "push",
        "to": ENDPOINT,
        "title": "Hello",
        "body": "Your table is ready",
    }
    return {name: value for name, value in {**base, **changes}.items() if value is not ...}


def push(**changes: Any) -> Push:
    """A message that has passed its checks, in a stage with APPLICATIONS."""
    return parse(push_item(**changes), {"push": push_to(APPLICATIONS)})


class Sns:
    """SNS as a client: each call says what it is told, in turn, and then all is well."""

    def __init__(self, publish: list[Exception] | None = None, create: list[Exception] | None = None) -> None:
        self._says = {"publish": publish or [], "create_platform_endpoint": create or []}
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def publish(self, **arguments: Any) -> dict[str, Any]:
        self._call("publish", arguments)
        return {"MessageId": "sns-1"}

    def create_platform_endpoint(self, **arguments: Any) -> dict[str, Any]:
        self._call("create_platform_endpoint", arguments)
        return {"EndpointArn": ENDPOINT}

    def _call(self, name: str, arguments: dict[str, Any]) -> None:
        self.calls.append((name, arguments))
        if self._says[name]:
            raise self._says[name].pop(0)


def adapter(client: Any, **changes: Any) -> SnsPush:
    known = {"applications": APPLICATIONS, "topics": [TOPIC], "clock": FakeClock()}
    return SnsPush(client, **{**known, **changes})


def payloads(message: str) -> dict[str, Any]:
    """What each platform gets, read twice as SNS and the platform read it; `default` is plain."""
    texts: dict[str, str] = json.loads(message)
    return {name: text if name == "default" else json.loads(text) for name, text in texts.items()}
