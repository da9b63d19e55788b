"""The versions of a secret, cached for a while."""

from datetime import UTC, datetime, timedelta

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from mailroom.aws.secret import CachedSecret
from tests.support.unit.events import lines_about
from tests.support.unit.post import Log
from tests.support.unit.shared import NOW, Aws, FakeClock
from tests.support.unit.webhooks import DOWN, ResourceNotFoundException, Secrets, cached_secret


def test_a_secret_is_cached_for_sixty_seconds(clock: FakeClock) -> None:
    client = Secrets("one")
    cached = cached_secret(client, clock)
    assert cached.current().text == "one"
    client.rotate("two", NOW)
    clock.advance(59)
    assert cached.current().text == "one"
    clock.advance(1)
    assert (cached.current().text, cached.current().created) == ("two", NOW)
    assert client.asked == ["AWSCURRENT", "AWSCURRENT"]


def test_the_previous_version_of_a_secret_is_cached_even_if_missing(clock: FakeClock) -> None:
    client = Secrets("one", NOW - 9)
    cached = cached_secret(client, clock)
    assert (cached.previous(), cached.previous()) == (None, None)
    assert client.asked == ["AWSPREVIOUS"]
    client.rotate("two", NOW)
    clock.advance(60)
    previous = cached.previous()
    assert previous is not None
    assert (previous.text, previous.created) == ("one", NOW - 9)


@pytest.mark.parametrize("trouble", [DOWN, EndpointConnectionError(endpoint_url="https://secrets")])
def test_the_cached_value_of_a_secret_is_used_while_secrets_manager_fails(
    clock: FakeClock, log: Log, trouble: Exception
) -> None:
    client = Secrets("one")
    cached = cached_secret(client, clock)
    cached.current()
    client.trouble = trouble
    clock.advance(60)
    assert [cached.current().text for _ in range(3)] == ["one"] * 3
    (line,) = lines_about(log(), "secret not read again; its old value is used")
    assert line["level"] == "WARNING"
    client.trouble = None
    client.rotate("two", NOW)
    clock.advance(60)
    assert cached.current().text == "two"


def test_without_a_cached_secret_each_call_reads_secrets_manager_again_and_raises_its_error(
    clock: FakeClock,
) -> None:
    client = Secrets()
    client.trouble = DOWN
    cached = cached_secret(client, clock)
    for _ in range(2):
        with pytest.raises(ClientError, match="try later"):
            cached.current()
    assert len(client.asked) == 2


def test_a_read_of_a_missing_secret_raises_the_error_of_secrets_manager(clock: FakeClock) -> None:
    client = Secrets()
    client.values.clear()
    with pytest.raises(ResourceNotFoundException):
        cached_secret(client, clock).current()


def test_the_text_of_a_secret_is_not_in_its_repr(clock: FakeClock) -> None:
    assert "one" not in repr(cached_secret(Secrets("one"), clock).current())
    assert "one" not in str(cached_secret(Secrets("one"), clock).current())


def test_the_current_and_the_previous_version_of_a_secret_are_read_from_secrets_manager(
    aws: Aws, clock: FakeClock
) -> None:
    client = boto3.client("secretsmanager")
    arn = client.create_secret(Name="mailroom-test-webhook-signing", SecretString="one")["ARN"]
    cached = CachedSecret(client, arn, clock)
    assert cached.previous() is None
    assert cached.current().text == "one"
    assert datetime.now(UTC) - datetime.fromtimestamp(cached.current().created, UTC) < timedelta(minutes=5)
    client.put_secret_value(SecretId=arn, SecretString="two")
    clock.advance(60)
    previous = cached.previous()
    assert previous is not None
    assert (cached.current().text, previous.text) == ("two", "one")
    client.delete_secret(SecretId=arn, ForceDeleteWithoutRecovery=True)
