"""AWS clients for the local stage. They set endpoint, credentials and region explicitly, so that a user's AWS
profile or region can never cause requests to a real account."""

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
    """Return the only access key that the emulator accepts, which is also its secret key. It is generated at
    random once, and stored in `.local/key`, which only the file's owner can read: everybody who has the key
    can create functions, which run as the user who started the emulator."""
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
    """URLs of the local stage, all on the loopback address."""

    aws: str
    providers: str

    @property
    def inbox(self) -> str:
        """URL that lists, as JSON, the messages that the providers' simulators accepted."""
        return f"{self.providers}/inbox"

    @property
    def received(self) -> str:
        """URL that lists, as JSON, the requests that the webhook receiver got."""
        return f"{self.providers}/receiver/received"

    @property
    def sns(self) -> str:
        """URL of SNS for functions: a simulator that stores published messages and forwards the requests to
        the emulator."""
        return f"{self.providers}/sns"

    def variables(self) -> dict[str, str]:
        """Return the environment variables with which any AWS SDK or CLI uses the local stage."""
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
    """Return an Authorization header for a request without an SDK. The emulator reads key, service and region
    from it, and checks no signature."""
    scope = f"{key()}/20260101/{REGION}/{service}/aws4_request"
    return f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0"


class LocalSession(boto3.Session):
    """boto3 session with the emulator's credentials, regardless of the user's environment."""

    def __init__(self) -> None:
        super().__init__(aws_access_key_id=key(), aws_secret_access_key=key(), region_name=REGION)


def patient(connections: int = 10, read_timeout: float = 60) -> Config:
    """Return a client configuration for the emulator: path-style S3, no proxy, no automatic retries.

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
    """Return the response to a request to this machine, without a proxy. Raises HTTPError for a status of 400
    or above."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect)
    return cast(HTTPResponse, opener.open(url, timeout=seconds))


def fetch(url: str, method: str = "GET", body: Mapping[str, Any] | None = None) -> Any:
    """Request `url`, and return the response parsed from JSON, or None if it is empty. `body` is sent as
    JSON."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, method=method)  # noqa: S310 - a URL of the stage
    with open_url(request, 30) as reply:
        return json.loads(reply.read() or b"null")


def answers(url: str) -> bool:
    """Return whether a GET of this URL gets the response 200 within a second."""
    try:
        with open_url(url, 1) as reply:
            return reply.status == 200
    except OSError:
        return False


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Handler that does not follow redirects, so that the caller gets them as responses."""

    def redirect_request(self, *_: Any) -> None:
        return None
