"""The AWS clients, made once a process: a function's later invocations reuse their connections."""

from functools import cache
from typing import TYPE_CHECKING

import boto3
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

_CONNECT_SECONDS = 2.0


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
    return boto3.client("sesv2", config=_once(submit_seconds))


@cache
def sms(submit_seconds: float) -> "PinpointSMSVoiceV2Client":
    """For AWS End User Messaging's sends, of which the same is true."""
    return boto3.client("pinpoint-sms-voice-v2", config=_once(submit_seconds))


@cache
def sns(submit_seconds: float) -> "SNSClient":
    """For publish, of which the same is true, and for the endpoint before it."""
    return boto3.client("sns", config=_once(submit_seconds))


def _once(submit_seconds: float) -> Config:
    return _config(read_seconds=max(1.0, submit_seconds - _CONNECT_SECONDS), attempts=1)
