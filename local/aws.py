"""Clients for the local stage. They carry their endpoints themselves, so no caller's profile or
region can ever send local data to a real account."""

import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.config import Config

REGION = "us-east-1"
ACCOUNT = "000000000000"  # what the emulator answers for the key `test`
KEY = "test"
STAGE = "local"


@dataclass(frozen=True)
class Endpoints:
    """Where the local stage listens. All on the loopback address."""

    aws: str
    providers: str

    @property
    def inbox(self) -> str:
        """What the providers' simulators accepted, as JSON."""
        return f"{self.providers}/inbox"

    @property
    def faxes(self) -> str:
        """The fax providers' log, as JSON."""
        return f"{self.providers}/faxes"

    @property
    def received(self) -> str:
        """What came to the webhook receiver, as JSON."""
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
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": KEY,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_REGION": REGION,
        }


class LocalSession(boto3.Session):
    """A session whose credentials are the emulator's, whatever the user's environment says."""

    def __init__(self) -> None:
        super().__init__(aws_access_key_id=KEY, aws_secret_access_key=KEY, region_name=REGION)


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


def fetch(url: str, method: str = "GET") -> Any:
    """What the simulators answer, read as JSON; None for an empty answer. Goes past any proxy."""
    request = urllib.request.Request(url, method=method)  # noqa: S310 - the stage's own
    with _opener().open(request, timeout=30) as reply:
        return json.loads(reply.read() or b"null")


def answers(url: str) -> bool:
    """Whether a GET of this URL succeeds at once. Goes past any proxy."""
    try:
        with _opener().open(url, timeout=1) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(urllib.request.ProxyHandler({}))
