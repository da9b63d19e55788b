"""The key of a host at the command line: the key with which the sender signs, and no other text."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from moto import mock_aws
from standardwebhooks import Webhook as Receiver

from mailroom.aws.secret import CachedSecret
from mailroom.providers.webhooks.signing import Signer
from mailroom_ops import cli
from tests.support.ops.run_app import run_app
from tests.support.ops.shared import Session
from tests.support.unit.webhooks import KEY, KEY_2, key_of

NAME = "mailroom-dev-webhook-keys"


@pytest.fixture
def secrets(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The account's Secrets Manager, with the secret of stage dev."""
    with mock_aws():
        session = Session()
        monkeypatch.setattr("boto3.Session", lambda: session)
        client = session.client("secretsmanager")
        client.create_secret(Name=NAME, SecretString=KEY)
        yield client


run_webhook_key = partial(run_app, cli.app, "webhook-key", columns=80)


def refusal_of_key(*arguments: str) -> str:
    result = run_webhook_key(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    return " ".join(result.stderr.split())


@pytest.mark.usefixtures("secrets")
def test_webhook_key_prints_only_the_signing_key_of_a_host() -> None:
    result = run_webhook_key("hooks.example.com")
    assert (result.exit_code, result.stdout) == (0, f"{key_of('hooks.example.com')}\n")
    assert result.stderr == ""


@pytest.mark.usefixtures("secrets")
def test_a_receiver_with_the_printed_key_verifies_the_signature_of_a_webhook(secrets: Any) -> None:
    key = run_webhook_key("hooks.example.com").stdout.strip()
    sender = Signer(CachedSecret(secrets, NAME, lambda: 0), 0, lambda: datetime.now(UTC).timestamp())
    assert Receiver(key).verify("{}", sender.headers("hooks.example.com", "msg_1", "{}")) == {}


@pytest.mark.usefixtures("secrets")
@pytest.mark.parametrize(
    ("given", "host"),
    [
        ("HOOKS.example.com", "hooks.example.com"),
        ("hooks.example.com:8443", "hooks.example.com"),
        ("https://hooks.example.com/orders?token=t", "hooks.example.com"),
        ("http://localhost:4580/receiver/ok", "localhost"),
        ("[2001:db8:0::1]", "2001:db8::1"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
    ],
)
def test_webhook_key_accepts_a_host_in_each_spelling_that_its_urls_may_have(given: str, host: str) -> None:
    answer = json.loads(run_webhook_key(given, "--json").stdout)
    assert answer == {"stage": "dev", "host": host, "key": key_of(host)}


@pytest.mark.usefixtures("secrets")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("hooks.example.com.", "has a host that is not a DNS name"),
        ("bücher.example", "write a host's name in its xn-- form"),
        ("ftp://hooks.example.com", "has the scheme 'ftp'; use https or http"),
        ("", "has no usable host"),
        ("hooks.example.com@evil.example", "carries a user's name or password"),
    ],
)
def test_webhook_key_refuses_an_invalid_host_and_does_not_print_a_key(given: str, said: str) -> None:
    words = refusal_of_key(given)
    assert words.startswith(f"HOST: {given!r} ")
    assert said in words


def test_the_printed_key_is_derived_from_the_newest_secret(secrets: Any) -> None:
    secrets.put_secret_value(SecretId=NAME, SecretString=KEY_2)
    assert run_webhook_key("hooks.example.com").stdout.strip() == key_of("hooks.example.com", KEY_2)


@pytest.mark.usefixtures("secrets")
def test_webhook_key_names_a_missing_secret_and_what_to_check() -> None:
    words = refusal_of_key("hooks.example.com", "--stage", "prod")
    assert words.startswith(
        "There is no secret mailroom-prod-webhook-keys in this account and region. Deploy"
    )


def test_webhook_key_refuses_an_invalid_secret_without_its_value(secrets: Any) -> None:
    secrets.put_secret_value(SecretId=NAME, SecretString=json.dumps({"key": "hunter2"}))
    words = refusal_of_key("hooks.example.com")
    assert words.startswith("mailroom-dev-webhook-keys: the signing secret is not a key; use base64 of ")
    assert "hunter2" not in words
