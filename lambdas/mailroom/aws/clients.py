"""AWS clients, each created once per process, so that a function's later invocations reuse its
connections."""

import time
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from botocore.awsrequest import (
    AWSHTTPConnection,
    AWSHTTPConnectionPool,
    AWSHTTPSConnection,
    AWSHTTPSConnectionPool,
)
from botocore.config import Config

if TYPE_CHECKING:
    import boto3
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_events import EventBridgeClient
    from types_boto3_lambda import LambdaClient
    from types_boto3_pinpoint_sms_voice_v2 import PinpointSMSVoiceV2Client
    from types_boto3_s3 import S3Client
    from types_boto3_secretsmanager import SecretsManagerClient
    from types_boto3_sesv2 import SESV2Client
    from types_boto3_sns import SNSClient
    from types_boto3_sqs import SQSClient

T = TypeVar("T")


class _Boto3:
    """The module boto3, imported with the first client: the console's function makes its clients by botocore,
    and imports this module only through others."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module("boto3"), name)


if not TYPE_CHECKING:
    boto3 = _Boto3()

_CONNECT_SECONDS = 2.0
MAX_IDLE_SECONDS = 5.0
"""Maximum number of seconds since a connection's last request began. An older connection is replaced. A new
connection costs a few milliseconds of CPU time."""


def _config(read_seconds: float, attempts: int) -> Config:
    return Config(
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=read_seconds,
        max_pool_connections=16,  # enough for the HTTP API, which puts up to 16 items at a time
        retries={"mode": "standard", "total_max_attempts": attempts},
        # botocore does not check the parameters of each request, because mypy checks them against boto3's
        # type stubs.
        parameter_validation=False,
        # The user agent is fixed. Otherwise botocore would build its long default twice for every request,
        # which takes a fifth of a call's CPU time.
        user_agent="mailroom",
    )


_REPEATABLE = _config(read_seconds=5, attempts=4)
REGIONAL = Config(signature_version="s3v4", s3={"addressing_style": "virtual"})
"""Configuration of a client of S3 whose URLs S3 accepts in every region.

By default, botocore signs URLs for S3's global host. Regions opened since 2019 refuse such a URL. Older
regions redirect it to another host in a bucket's first hours, and the signature is wrong for that host.
"""


@cache
def dynamodb() -> "DynamoDBClient":
    """Return the DynamoDB client for conditional writes, which are safe to repeat."""
    return boto3.client("dynamodb", config=_REPEATABLE)


@cache
def dynamodb_once() -> "DynamoDBClient":
    """Return the DynamoDB client for writes that would take effect a second time if the SDK repeated them.

    The client tries a write only once. A write without a response has an unknown outcome.
    """
    return _on_recent_connections(boto3.client("dynamodb", config=_config(read_seconds=5, attempts=1)))


@cache
def sqs() -> "SQSClient":
    """Return the SQS client, for visibility time-outs and sends. A repeated send may make a duplicate, which
    the ledger drops."""
    return boto3.client("sqs", config=_REPEATABLE)


@cache
def functions() -> "LambdaClient":
    """Return the Lambda client, for invocations that do no harm if the SDK repeats them."""
    return boto3.client("lambda", config=_REPEATABLE)


@cache
def s3() -> "S3Client":
    """Return the S3 client, for objects of the payload bucket and their URLs."""
    return boto3.client("s3", config=_REPEATABLE.merge(REGIONAL))


@cache
def secretsmanager() -> "SecretsManagerClient":
    """Return the Secrets Manager client, for credentials and signing keys, which must not be in environment
    variables.

    The client gives up quickly, because a secret is read within the time of a submit.
    """
    return boto3.client("secretsmanager", config=_config(read_seconds=2, attempts=2))


@cache
def events() -> "EventBridgeClient":
    """Return the EventBridge client. An event that is put again keeps its ID.

    The client gives up quickly, because callbacks and retries wait behind an event in the stream, and the
    stream delivers the record of a failed event again.
    """
    return boto3.client("events", config=_config(read_seconds=2, attempts=2))


@cache
def sesv2(submit_seconds: float) -> "SESV2Client":
    """Return the SES client, for send_email, a call without an idempotency key.

    The client tries a submit only once. A submit without a response in time has an unknown outcome.
    """
    return _on_recent_connections(boto3.client("sesv2", config=_once(submit_seconds)))


@cache
def sms(submit_seconds: float) -> "PinpointSMSVoiceV2Client":
    """Return the client for AWS End User Messaging. This client too tries a submit only once: see `sesv2`."""
    return _on_recent_connections(boto3.client("pinpoint-sms-voice-v2", config=_once(submit_seconds)))


@cache
def sns(submit_seconds: float) -> "SNSClient":
    """Return the SNS client, for endpoints and publish. This client too tries a submit only once: see
    `sesv2`."""
    return _on_recent_connections(boto3.client("sns", config=_once(submit_seconds)))


def _once(submit_seconds: float) -> Config:
    return _config(read_seconds=max(1.0, submit_seconds - _CONNECT_SECONDS), attempts=1)


class _Recent:
    """Connection that counts as dropped after MAX_IDLE_SECONDS, so that urllib3 replaces it.

    An idle connection may be dead without a sign: Lambda purges idle connections while a function is frozen
    ("Best practices for working with AWS Lambda functions", on keep-alive), and NAT gateways and services
    close them too. Calls with retries survive a dead connection. But a submit is tried only once, and after a
    reset it is unknown whether the submit reached the provider.
    """

    clock: Callable[[], float] = staticmethod(time.time)
    """The wall clock, because the monotonic clock may stop while a function is frozen."""
    _used = 0.0

    def request(self, *args: Any, **kwargs: Any) -> Any:
        self._used = self.clock()
        return super().request(*args, **kwargs)  # type: ignore[misc] # the other base class has `request`

    @property
    def is_connected(self) -> bool:
        recent = 0 <= self.clock() - self._used < MAX_IDLE_SECONDS
        return recent and super().is_connected  # type: ignore[misc]


class _RecentHttp(_Recent, AWSHTTPConnection):  # type: ignore[misc] # botocore is untyped
    pass


class _RecentHttps(_Recent, AWSHTTPSConnection):  # type: ignore[misc]
    pass


class _HttpPool(AWSHTTPConnectionPool):
    ConnectionCls = _RecentHttp


class _HttpsPool(AWSHTTPSConnectionPool):
    ConnectionCls = _RecentHttps


def _on_recent_connections(client: T) -> T:
    """Make the client use only new connections and those used within MAX_IDLE_SECONDS, and return the client.

    botocore lacks a setting for the age of connections. Its session has the classes of its pools in a
    dictionary, which its pool manager reads.
    """
    session = client._endpoint.http_session  # type: ignore[attr-defined]
    session._pool_classes_by_scheme.update(http=_HttpPool, https=_HttpsPool)
    return client
