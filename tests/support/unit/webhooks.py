"""A webhook sender whose secret, names and network a test sets."""

import base64
import hmac
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from mailroom.aws.secret import READ_AGAIN_SECONDS, CachedSecret
from mailroom.channels.webhook.contract import Webhook
from mailroom.errors import RequestFailed
from mailroom.http.https import Answer, Deadline, HttpClient
from mailroom.http.url_policy import RequestTarget, UrlPolicy
from mailroom.message.message import parse
from mailroom.providers.webhooks.sender import StandardWebhooks
from mailroom.providers.webhooks.signing import Signer
from tests.support.unit.fakes import client_error
from tests.support.unit.shared import NOW, Item

KEY = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" + "MfKQ9r8GKYqr"  # 44 letters and digits, as the stack makes them
KEY_2 = "C2FVsBQIhrscChlQIMV4b5sSYspob7oD" + "C2FVsBQIhrsc"
ARN = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:mailroom-test-webhook-signing-AbCdEf"
OVERLAP = 86400.0
HOST = "hooks.example"


def key_of(host: str, secret: str = KEY) -> str:
    """Return the key of a host by the rule in docs/explanation/design.md."""
    derived = hmac.digest(
        base64.b64decode(secret), b"mailroom webhook key\0" + host.encode("ascii"), "sha256"
    )
    return "whsec_" + base64.b64encode(derived).decode()


class ResourceNotFoundException(Exception):
    """The client's exception of that name."""


class Secrets:
    """Secrets Manager as a client: values by stage, each with the time of its creation."""

    class exceptions:  # noqa: N801 - the client names it so
        ResourceNotFoundException = ResourceNotFoundException

    def __init__(self, current: str = KEY, created: float = NOW - 2 * OVERLAP) -> None:
        self.values = {"AWSCURRENT": (current, created)}
        self.trouble: Exception | None = None
        self.asked: list[str] = []

    def rotate(self, value: str, created: float) -> None:
        self.values = {"AWSPREVIOUS": self.values["AWSCURRENT"], "AWSCURRENT": (value, created)}

    def get_secret_value(self, *, SecretId: str, VersionStage: str) -> dict[str, Any]:  # noqa: N803
        assert SecretId == ARN
        self.asked.append(VersionStage)
        if self.trouble is not None:
            raise self.trouble
        if VersionStage not in self.values:
            raise ResourceNotFoundException
        text, created = self.values[VersionStage]
        return {"SecretString": text, "CreatedDate": datetime.fromtimestamp(created, UTC)}


DENIED = client_error("AccessDeniedException", "not authorized")
THROTTLED = client_error("ThrottlingException", "Rate exceeded")
DOWN = client_error("InternalServiceError", "try later", 500)


def cached_secret(
    client: Secrets, clock: Callable[[], float], seconds: float = READ_AGAIN_SECONDS
) -> CachedSecret:
    return CachedSecret(client, ARN, clock, seconds)  # type: ignore[arg-type]


def signer(client: Secrets, clock: Callable[[], float]) -> Signer:
    return Signer(cached_secret(client, clock), OVERLAP, clock)


class Wire(HttpClient):
    """A client that records its requests and returns the responses of a test, in turn; the last repeats."""

    def __init__(self, *answers: int | Answer | RequestFailed) -> None:
        self._answers = [*answers]
        self.posts: list[tuple[RequestTarget, dict[str, str], bytes]] = []

    def post(self, target: RequestTarget, headers: Any, body: bytes, deadline: Deadline) -> Answer:
        self.posts.append((target, dict(headers), body))
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, RequestFailed):
            raise answer
        return Answer(answer) if isinstance(answer, int) else answer


def standard_webhooks(
    wire: HttpClient,
    clock: Callable[[], float],
    secrets: Secrets | None = None,
    policy: UrlPolicy | None = None,
) -> StandardWebhooks:
    return StandardWebhooks(
        policy or UrlPolicy(resolve=lambda _host, _seconds: ["8.8.8.8"]),
        signer(secrets or Secrets(), clock),
        wire,
        seconds=15,
        retry_after_cap=3600,
        clock=clock,
    )


def webhook_item(**changes: Any) -> Item:
    """Return a valid webhook item; a change to `...` removes the attribute."""
    base: Item = {
        "id": "w-1",
        "event_type": "webhook",
        "url": "https://hooks.example/orders?token=t",
        "payload": {"order": 7},
    }
    return {name: value for name, value in {**base, **changes}.items() if value is not ...}


def webhook(**changes: Any) -> Webhook:
    """Return a valid message."""
    return parse(webhook_item(**changes), {"webhook": Webhook})
