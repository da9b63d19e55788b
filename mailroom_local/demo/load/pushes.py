"""The demo's pushes. A word in a token chooses what SNS does: see mailroom_local/providers/sns.py."""

from collections.abc import Mapping, Sequence
from typing import Any

from mailroom_local.aws import Endpoints, LocalSession, patient
from lab.harness.acceptances import MARK
from lab.harness.expected import Expected

ANDROID, IOS = "android", "ios"
"""The stage's platform applications, by their names there."""
BY_ARN: dict[str, tuple[str, ...]] = {
    ANDROID: tuple(f"android-device-{n}" for n in range(6)),
    IOS: tuple(f"{n:02x}" * 32 for n in range(0xA0, 0xA4)),
}
"""Tokens whose endpoints the app itself has registered."""
THROTTLED, DISABLED = "throttled-once-device", "disabled-device"
TOKENS: dict[str, tuple[str, ...]] = {
    ANDROID: tuple(f"new-android-device-{n}" for n in range(3)),
    IOS: tuple(f"{n:02x}" * 32 for n in range(0xB0, 0xB2)),
}
"""Tokens that are not registered yet."""


def register(endpoints: Endpoints, applications: Mapping[str, str]) -> dict[str, str]:
    """Register the devices with SNS, as their app does. `applications` are ARNs of platform applications by
    name; returns the ARNs of the devices' endpoints by token."""
    sns = LocalSession().client("sns", endpoint_url=endpoints.sns, config=patient())
    arns = {}
    for name, token in registered():
        answer = sns.create_platform_endpoint(PlatformApplicationArn=applications[name], Token=token)
        arns[token] = answer["EndpointArn"]
    return arns


def registered() -> list[tuple[str, str]]:
    """Application and token of each endpoint that must be there."""
    own = [(application, token) for application, tokens in BY_ARN.items() for token in tokens]
    return [*own, (ANDROID, THROTTLED), (ANDROID, DISABLED)]


def pushes(endpoints: Mapping[str, str], topics: Sequence[str]) -> list[Expected]:
    """All of them; `endpoints` are ARNs by token."""
    by_arn = [token for tokens in BY_ARN.values() for token in tokens]
    foreign = endpoints[DISABLED].replace("mailroom-local", "somebody-elses")
    return [
        *(_push(f"endpoint-{n}", endpoints[token]) for n, token in enumerate(by_arn)),
        *(
            _push(f"{application}-token-{n}", token, platform=application)
            for application, tokens in TOKENS.items()
            for n, token in enumerate(tokens)
        ),
        *(_push(f"topic-{n}", topic) for n, topic in enumerate(topics)),
        _push("silent", endpoints[by_arn[0]], title=None, body=None),
        _push("throttled", endpoints[THROTTLED]),
        _push("disabled", endpoints[DISABLED], reason="isabled"),
        _push("malformed-token", "not-hexadecimal", platform=IOS, reason="oken"),
        _push("no-application", "android-device", platform="windows", reason="platform: "),
        _push("foreign-endpoint", foreign, reason="to: "),
        _push("empty", endpoints[by_arn[0]], title=None, body=None, data=None, reason="body: "),
    ]


def suppressed(endpoints: Mapping[str, str]) -> dict[str, str]:
    """The endpoints that must be on the suppression list in the end, and why."""
    return {endpoints[DISABLED]: "gone"}


def again(endpoints: Mapping[str, str]) -> Expected:
    """A second push to the disabled endpoint, to be put when the first has failed."""
    return _push("again", endpoints[DISABLED], reason="dropped", ends="suppressed")


def _push(name: str, to: str, *, reason: str = "", ends: str = "", **attributes: Any) -> Expected:
    id_ = f"push-{name}"
    item = {
        "id": id_,
        "event_type": "push",
        "to": to,
        "title": "Hello",
        "body": f"From {name}",
        "data": {MARK: id_, "order": 7},
        **attributes,
    }
    return Expected({key: value for key, value in item.items() if value is not None}, reason, ends)
