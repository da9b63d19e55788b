"""A secret's versions, kept for a while."""

from datetime import UTC, datetime, timedelta

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from mailroom.aws.secret import CachedSecret
from tests.support.unit.events import lines_about
from tests.support.unit.post import Log
from tests.support.unit.shared import NOW, Aws, FakeClock
from tests.support.unit.webhooks import DOWN, ResourceNotFoundException, Secrets, secret


def test_a_secret_is_read_once_in_its_time_and_then_again(clock: FakeClock) -> None:
    client = Secrets("one")
    kept = secret(client, clock)
    assert kept.current().text == "one"
    client.rotate("two", NOW)
    clock.advance(59)
    assert kept.current().text == "one"
    clock.advance(1)
    assert (kept.current().text, kept.current().created) == ("two", NOW)
    assert client.asked == ["AWSCURRENT", "AWSCURRENT"]


def test_the_previous_version_is_kept_as_well_and_may_be_missing(clock: FakeClock) -> None:
    client = Secrets("one", NOW - 9)
    kept = secret(client, clock)
    assert (kept.previous(), kept.previous()) == (None, None)
    assert client.asked == ["AWSPREVIOUS"]
    client.rotate("two", NOW)
    clock.advance(60)
    previous = kept.previous()
    assert previous is not None
    assert (previous.text, previous.created) == ("one", NOW - 9)


@pytest.mark.parametrize("trouble", [DOWN, EndpointConnectionError(endpoint_url="https://secrets")])
def test_what_is_known_stays_good_while_it_cannot_be_read_again(
    clock: FakeClock, log: Log, trouble: Exception
) -> None:
    client = Secrets("one")
    kept = secret(client, clock)
    kept.current()
    client.trouble = trouble
    clock.advance(60)
    assert [kept.current().text for _ in range(3)] == ["one"] * 3
    (line,) = lines_about(log(), "secret not read again; its old value stays")
    assert line["level"] == "WARNING"
    client.trouble = None
    client.rotate("two", NOW)
    clock.advance(60)
    assert kept.current().text == "two"


def test_where_nothing_is_known_the_fault_is_raised_each_time(clock: FakeClock) -> None:
    client = Secrets()
    client.trouble = DOWN
    kept = secret(client, clock)
    for _ in range(2):
        with pytest.raises(ClientError, match="try later"):
            kept.current()
    assert len(client.asked) == 2


def test_a_secret_that_does_not_exist_is_a_fault(clock: FakeClock) -> None:
    client = Secrets()
    client.values.clear()
    with pytest.raises(ResourceNotFoundException):
        secret(client, clock).current()


def test_a_version_never_shows_its_text(clock: FakeClock) -> None:
    assert "one" not in repr(secret(Secrets("one"), clock).current())
    assert "one" not in str(secret(Secrets("one"), clock).current())


def test_secrets_manager_answers_so(aws: Aws, clock: FakeClock) -> None:
    client = boto3.client("secretsmanager")
    arn = client.create_secret(Name="mailroom-test-webhook-signing", SecretString="one")["ARN"]
    kept = CachedSecret(client, arn, clock)
    assert kept.previous() is None
    assert kept.current().text == "one"
    assert datetime.now(UTC) - datetime.fromtimestamp(kept.current().created, UTC) < timedelta(minutes=5)
    client.put_secret_value(SecretId=arn, SecretString="two")
    clock.advance(60)
    previous = kept.previous()
    assert previous is not None
    assert (kept.current().text, previous.text) == ("two", "one")
    client.delete_secret(SecretId=arn, ForceDeleteWithoutRecovery=True)
