"""The AWS clients: safe calls are repeated, and a submit is tried once."""

import os
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest

from mailroom.aws import clients

Make = Callable[[], Any]
REPEATABLE: list[Make] = [clients.dynamodb, clients.sqs, clients.s3]
SUBMITTING: list[Make] = [lambda: clients.sesv2(9.0), lambda: clients.sms(9.0), lambda: clients.sns(9.0)]


@pytest.fixture(autouse=True)
def _isolated_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the machine's profiles and endpoints from the clients, which are real but make no calls here."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)


@pytest.mark.parametrize("make", SUBMITTING)
def test_clients_that_submit_messages_make_one_try_of_at_most_nine_seconds(make: Make) -> None:
    config = make().meta.config
    assert config.retries["total_max_attempts"] == 1
    assert config.connect_timeout + config.read_timeout <= 9.0


def test_the_dynamodb_client_for_writes_that_must_not_be_repeated_makes_one_try() -> None:
    config = clients.dynamodb_once().meta.config
    assert config.retries["total_max_attempts"] == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("make", REPEATABLE)
def test_clients_for_repeatable_calls_make_at_most_four_tries_of_at_most_ten_seconds_of_reading(
    make: Make,
) -> None:
    config = make().meta.config
    assert config.retries["total_max_attempts"] == 4
    assert config.read_timeout <= 10


@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("eu-south-1", "s3.eu-south-1.amazonaws.com"),
        ("me-central-1", "s3.me-central-1.amazonaws.com"),
        ("eu-central-1", "s3.eu-central-1.amazonaws.com"),
        ("us-west-2", "s3.us-west-2.amazonaws.com"),
        ("us-east-1", "s3.amazonaws.com"),  # the host of this region alone, in spite of its general name
    ],
)
def test_a_presigned_url_names_the_host_and_region_of_its_bucket(
    monkeypatch: pytest.MonkeyPatch, region: str, host: str
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", region)
    url = urlsplit(_presigned("payloads-1"))
    assert (url.netloc, url.path) == (f"payloads-1.{host}", "/f-1.pdf")
    assert f"%2F{region}%2Fs3%2Faws4_request" in url.query


def test_a_presigned_url_for_a_local_endpoint_has_the_bucket_in_its_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:4566")
    url = urlsplit(_presigned("payloads-1"))
    assert (url.netloc, url.path) == ("127.0.0.1:4566", "/payloads-1/f-1.pdf")


def _presigned(bucket: str) -> str:
    clients.s3.cache_clear()  # The client has the region and the endpoint of the environment at its creation.
    return clients.s3().generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": "f-1.pdf"})
