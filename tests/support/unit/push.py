"""Push notifications, and an SNS whose responses a test sets."""

import json
from typing import Any

from mailroom.channels.push.contract import Push, push_to
from mailroom.message.message import parse
from mailroom.providers.sns.sender import SnsPush
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
    """Return a valid item; a change to `...` removes the attribute."""
    content = {"title": "Hello", "body": "Your table is ready"}
    base = {"id": "p-1", "event_type": "push", "to": ENDPOINT, **content}
    return {name: value for name, value in {**base, **changes}.items() if value is not ...}


def push(**changes: Any) -> Push:
    """Return a valid message of a stage with APPLICATIONS."""
    return parse(push_item(**changes), {"push": push_to(APPLICATIONS)})


class Sns:
    """SNS as a client: its first calls raise the errors of a test, further calls succeed."""

    def __init__(self, publish: list[Exception] | None = None, create: list[Exception] | None = None) -> None:
        self._errors = {"publish": publish or [], "create_platform_endpoint": create or []}
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def publish(self, **arguments: Any) -> dict[str, Any]:
        self._call("publish", arguments)
        return {"MessageId": "sns-1"}

    def create_platform_endpoint(self, **arguments: Any) -> dict[str, Any]:
        self._call("create_platform_endpoint", arguments)
        return {"EndpointArn": ENDPOINT}

    def _call(self, name: str, arguments: dict[str, Any]) -> None:
        self.calls.append((name, arguments))
        if self._errors[name]:
            raise self._errors[name].pop(0)


def push_adapter(client: Any, **changes: Any) -> SnsPush:
    settings = {"applications": APPLICATIONS, "topics": [TOPIC], "clock": FakeClock()}
    return SnsPush(client, **{**settings, **changes})


def payloads(message: str) -> dict[str, Any]:
    """Return the payload of each platform, decoded; `default` is plain text."""
    texts: dict[str, str] = json.loads(message)
    return {name: text if name == "default" else json.loads(text) for name, text in texts.items()}
