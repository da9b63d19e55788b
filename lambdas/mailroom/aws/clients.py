"""The AWS clients, made once a process: a function's later invocations reuse their connections."""

import time
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import boto3
from botocore.awsrequest import (
    AWSHTTPConnection,
    AWSHTTPConnectionPool,
    AWSHTTPSConnection,
    AWSHTTPSConnectionPool,
)
from botocore.config import Config

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_events import EventBridgeClient
    from types_boto3_pinpoint_sms_voice_v2 import PinpointSMSVoiceV2Client
    from types_boto3_s3 import S3Client
    from types_boto3_scheduler import EventBridgeSchedulerClient
    from types_boto3_secretsmanager import SecretsManagerClient
    from types_boto3_sesv2 import SESV2Client
    from types_boto3_sns import SNSClient
    from types_boto3_sqs import SQSClient

T = TypeVar("T")

_CONNECT_SECONDS = 2.0
MAX_IDLE_SECONDS = 5.0
"""Counted from the last request's beginning. A connection's set-up costs a few milliseconds of CPU."""


def _config(read_seconds: float, attempts: int) -> Config:
    return Config(
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=read_seconds,
        max_pool_connections=16,  # as many puts at a time as the HTTP API makes
        retries={"mode": "standard", "total_max_attempts": attempts},
        # Requests are built by code that mypy checks against the services' own types.
        parameter_validation=False,
        # botocore builds its long one anew for every request, twice: a fifth of a call's CPU time.
        user_agent="mailroom",
    )


_REPEATABLE = _config(read_seconds=5, attempts=4)


@cache
def dynamodb() -> "DynamoDBClient":
    """For conditional writes, which are safe to repeat."""
    return boto3.client("dynamodb", config=_REPEATABLE)


@cache
def dynamodb_once() -> "DynamoDBClient":
    """For a write that has another effect if it is repeated: one try, and no answer means unknown."""
    return _on_recent_connections(boto3.client("dynamodb", config=_config(read_seconds=5, attempts=1)))


@cache
def sqs() -> "SQSClient":
    """For sends (a repeated one is a duplicate that the ledger drops) and visibility."""
    return boto3.client("sqs", config=_REPEATABLE)


@cache
def s3() -> "S3Client":
    """For objects of the payload bucket, and URLs of them that S3 accepts in every region.

    Left to itself botocore signs URLs for S3's global host. Regions since 2019 refuse those, and elsewhere a
    bucket's first hours bring a redirect to another host, for which the signature is wrong.
    """
    regional = Config(signature_version="s3v4", s3={"addressing_style": "virtual"})
    return boto3.client("s3", config=_REPEATABLE.merge(regional))


@cache
def secretsmanager() -> "SecretsManagerClient":
    """For what must not stand in an environment: credentials, signing keys. Quick to give up, for it is read
    within the time of a submit."""
    return boto3.client("secretsmanager", config=_config(read_seconds=2, attempts=2))


@cache
def scheduler() -> "EventBridgeSchedulerClient":
    """For schedules with names of our own, so that a repeat conflicts with itself."""
    return boto3.client("scheduler", config=_REPEATABLE)


@cache
def events() -> "EventBridgeClient":
    """For events that keep their id when they are put again. Quick to give up, for callbacks and retries wait
    behind them in the stream, and the stream brings them again."""
    return boto3.client("events", config=_config(read_seconds=2, attempts=2))


@cache
def sesv2(submit_seconds: float) -> "SESV2Client":
    """For send_email, which has no idempotency key: one try, and no answer in time means unknown."""
    return _on_recent_connections(boto3.client("sesv2", config=_once(submit_seconds)))


@cache
def sms(submit_seconds: float) -> "PinpointSMSVoiceV2Client":
    """For AWS End User Messaging's sends, of which the same is true."""
    return _on_recent_connections(boto3.client("pinpoint-sms-voice-v2", config=_once(submit_seconds)))


@cache
def sns(submit_seconds: float) -> "SNSClient":
    """For publish, of which the same is true, and for the endpoint before it."""
    return _on_recent_connections(boto3.client("sns", config=_once(submit_seconds)))


def _once(submit_seconds: float) -> Config:
    return _config(read_seconds=max(1.0, submit_seconds - _CONNECT_SECONDS), attempts=1)


class _Recent:
    """A connection that counts as dropped when it rested for a while; urllib3 then opens it anew.

    It may be dead without anybody knowing: Lambda purges idle connections while a function is frozen ("Best
    practices for working with AWS Lambda functions", on keep-alive), and NAT gateways and services end them
    too. A call that repeats itself does not mind. A submit is tried once, and a reset does not say whether it
    arrived.
    """

    clock: Callable[[], float] = staticmethod(time.time)
    """Not the monotonic clock, which may stand still while a function is frozen."""
    _used = 0.0

    def request(self, *args: Any, **kwargs: Any) -> Any:
        self._used = self.clock()
        return super().request(*args, **kwargs)  # type: ignore[misc] # urllib3's, by each class below

    @property
    def is_connected(self) -> bool:
        recent = 0 <= self.clock() - self._used < MAX_IDLE_SECONDS
        return recent and super().is_connected  # type: ignore[misc]


class _RecentHttp(_Recent, AWSHTTPConnection):  # type: ignore[misc] # as botocore's own class
    pass


class _RecentHttps(_Recent, AWSHTTPSConnection):  # type: ignore[misc]
    pass


class _HttpPool(AWSHTTPConnectionPool):
    ConnectionCls = _RecentHttp


class _HttpsPool(AWSHTTPSConnectionPool):
    ConnectionCls = _RecentHttps


def _on_recent_connections(client: T) -> T:
    """The client, whose calls from here on go over connections that were used MAX_IDLE_SECONDS ago at most,
    or over new ones.

    botocore has no setting for that: its session keeps the classes of its pools in a dictionary, which its
    pool manager reads.
    """
    session = client._endpoint.http_session  # type: ignore[attr-defined]
    session._pool_classes_by_scheme.update(http=_HttpPool, https=_HttpsPool)
    return client
