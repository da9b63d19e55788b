"""Clients for the local stage. They carry their endpoints themselves: no profile or region of the user's can
send local data to a real account."""

import json
import os
import secrets
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from http.client import HTTPResponse
from typing import Any, cast

import boto3
from botocore.config import Config

from mailroom_stacks.paths import DOT_LOCAL

REGION = "us-east-1"
ACCOUNT = "000000000000"
STAGE = "local"
_KEY = DOT_LOCAL / "key"


@cache
def key() -> str:
    """The emulator's only key, which is also its own secret: at random, once for this folder, and for its
    owner to read. Whoever has the key may create functions, which run as who started the emulator."""
    if not _KEY.exists():
        _KEY.parent.mkdir(exist_ok=True)
        draft = _KEY.with_name(f"key.{os.getpid()}")
        draft.touch(mode=0o600)
        draft.write_text(f"MAILROOM{secrets.token_hex(16)}")
        with suppress(FileExistsError):  # another process has created the key first
            os.link(draft, _KEY)
        draft.unlink()
    return _KEY.read_text()


@dataclass(frozen=True)
class Endpoints:
    """Endpoints of the local stage, all on the loopback address."""

    aws: str
    providers: str

    @property
    def inbox(self) -> str:
        """URL of the messages that the providers' simulators accepted, as JSON."""
        return f"{self.providers}/inbox"

    @property
    def received(self) -> str:
        """URL of the requests that reached the webhook receiver, as JSON."""
        return f"{self.providers}/receiver/received"

    @property
    def sns(self) -> str:
        """SNS as the functions see it: what is pushed is kept on its way to the emulator."""
        return f"{self.providers}/sns"

    def variables(self) -> dict[str, str]:
        """The environment that points any AWS SDK or CLI at the local stage."""
        return {
            "AWS_ENDPOINT_URL": self.aws,
            "AWS_ENDPOINT_URL_S3": self.aws,
            "AWS_ENDPOINT_URL_SESV2": self.providers,
            "AWS_ENDPOINT_URL_SNS": self.sns,
            "AWS_ACCESS_KEY_ID": key(),
            "AWS_SECRET_ACCESS_KEY": key(),
            "AWS_DEFAULT_REGION": REGION,
            "AWS_REGION": REGION,
        }


def authorization(service: str) -> str:
    """An Authorization header for a request by hand: the emulator reads key, service and region, and checks
    no signature."""
    scope = f"{key()}/20260101/{REGION}/{service}/aws4_request"
    return f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0"


class LocalSession(boto3.Session):
    """A session with the emulator's credentials, whatever the user's environment says."""

    def __init__(self) -> None:
        super().__init__(aws_access_key_id=key(), aws_secret_access_key=key(), region_name=REGION)


def patient(connections: int = 10, read_timeout: float = 60) -> Config:
    """A client configuration for the emulator: path-style S3, no proxy, no hidden retries of calls.

    `read_timeout` is in seconds.
    """
    return Config(
        max_pool_connections=connections,
        read_timeout=read_timeout,
        retries={"total_max_attempts": 1},
        proxies={},
        s3={"addressing_style": "path"},
    )


def open_url(url: str | urllib.request.Request, seconds: float) -> HTTPResponse:
    """Response to a request on this machine; bypasses any proxy. Raises HTTPError for 400 and above."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect)
    return cast(HTTPResponse, opener.open(url, timeout=seconds))


def fetch(url: str, method: str = "GET", body: Mapping[str, Any] | None = None) -> Any:
    """Return the simulators' response, parsed from JSON; None if it is empty. `body` is sent as JSON."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, method=method)  # noqa: S310 - the stage's own
    with open_url(request, 30) as reply:
        return json.loads(reply.read() or b"null")


def answers(url: str) -> bool:
    """Whether a GET of this URL succeeds at once."""
    try:
        with open_url(url, 1) as reply:
            return reply.status == 200
    except OSError:
        return False


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect is an answer like any other."""

    def redirect_request(self, *_: Any) -> None:
        return None
