"""AWS in process, made once a module and emptied for each test; time stands still."""

import io
import json
import os
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import cache
from typing import Any

import boto3
import pytest
from moto import mock_aws
from moto.s3.models import s3_backends
from moto.sqs.models import sqs_backends

from mailroom import telemetry
from mailroom.aws import clients
from mailroom.campaigns.runs import Runs
from mailroom.ledger.ledger import Ledger
from mailroom.recipients.choices import Preferences, Suppressions
from tests.support.bounds import holding_bounds
from tests.support.dynamodb import in_memory_dynamodb
from tests.support.tables import create_ledger, create_table
from tests.support.unit.consequences import consequences as consequences
from tests.support.unit.dispatching import dispatcher as dispatcher
from tests.support.unit.fax_credentials import stand_in as stand_in
from tests.support.unit.fax_post import fax_ledger as fax_ledger
from tests.support.unit.fax_post import fax_post as fax_post
from tests.support.unit.functions import load as load
from tests.support.unit.functions import outbox as outbox
from tests.support.unit.post import make_post as make_post
from tests.support.unit.releasing import waiting as waiting
from tests.support.unit.rights import Judge, judged
from tests.support.unit.shared import (
    BUCKET,
    BUDGETS,
    CONTENTS,
    LEASE,
    LEDGER,
    MAILBOX,
    PREFERENCES,
    QUEUES,
    REGION,
    RUNS,
    SEARCH,
    SEARCH_KEY,
    SENDER,
    SUPPRESSIONS,
    TEMPLATES,
    TTL,
    Aws,
    FakeClock,
)
from tests.support.unit.shelf import shelf as shelf

_CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_SESSION_TOKEN": "testing",
    "AWS_DEFAULT_REGION": REGION,
}


@pytest.fixture(scope="module", autouse=True)
def _bounds() -> Iterator[None]:
    with holding_bounds():
        yield


@pytest.fixture(scope="session")
def judge(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Judge | None:
    """The judge of the calls of handlers. `make quick` has none: the rights are in templates, which a process
    of Node writes."""
    if request.config.option.markexpr == "not process":
        return None
    from tests.support.stacks.campaign_folders import EVERYTHING, of_each_kind
    from tests.support.stacks.variants import BY_RESEND, variant

    campaigns = of_each_kind(tmp_path_factory.mktemp("everything"))
    return Judge([variant(EVERYTHING, campaigns=campaigns), variant(BY_RESEND)])


@pytest.fixture(scope="module", autouse=True)
def _rights(judge: Judge | None) -> Iterator[None]:
    with judged(judge) if judge else nullcontext():
        yield


@pytest.fixture(scope="module")
def _world() -> Iterator[Aws]:
    with pytest.MonkeyPatch.context() as patch, mock_aws(), in_memory_dynamodb():
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        for name, value in _CREDENTIALS.items():
            patch.setenv(name, value)
        aws = Aws(
            boto3.client("dynamodb"), _shared_client("sqs"), _shared_client("s3"), _shared_client("sesv2")
        )
        _make(aws)
        yield aws


@cache
def _shared_client(service: str) -> Any:
    """Return the same client for each module. Creating a client takes longer than most tests."""
    return boto3.client(service)  # type: ignore[call-overload]


def _make(aws: Aws) -> None:
    create_table(aws.dynamodb, MAILBOX)
    create_ledger(aws.dynamodb, LEDGER)
    create_table(aws.dynamodb, CONTENTS, "message", "version")
    create_table(aws.dynamodb, SUPPRESSIONS, "recipient", "channel")
    create_table(aws.dynamodb, PREFERENCES, "recipient", "topic")
    create_table(aws.dynamodb, RUNS, "campaign", "run")
    create_table(aws.dynamodb, BUDGETS, "name", None)
    create_table(aws.dynamodb, SEARCH, "found_by", "put")
    secret = '{"key": "0123456789abcdefKEY"}'  # that of tests/support/unit/searching.py
    _shared_client("secretsmanager").create_secret(Name=SEARCH_KEY, SecretString=secret)
    for name in QUEUES:
        fifo: Any = {"FifoQueue": "true"} if name.endswith(".fifo") else {}
        url = aws.sqs.create_queue(QueueName=f"mailroom-test-{name}", Attributes=fifo)["QueueUrl"]
        aws.urls[name] = url
    for bucket in (BUCKET, TEMPLATES):
        aws.s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    aws.sesv2.create_email_identity(EmailIdentity=SENDER.split("<")[1].rstrip(">"))


@pytest.fixture
def aws(_world: Aws) -> Aws:
    """AWS with empty tables and queues."""
    tables: Any = _world.dynamodb
    tables.empty()
    for queue in sqs_backends["123456789012"][REGION].queues.values():
        queue._messages.clear()
        queue.pending_messages.clear()
    s3_backends["123456789012"]["aws"].buckets[TEMPLATES].keys.clear()
    return _world


@pytest.fixture
def clock() -> FakeClock:
    """2026-11-21T09:00:00Z, until a test moves it."""
    return FakeClock()


@pytest.fixture
def ledger(aws: Aws, clock: FakeClock) -> Ledger:
    """The ledger of a worker with a lease of LEASE seconds."""
    return Ledger(aws.dynamodb, LEDGER, lease=LEASE, ttl=TTL, clock=clock)


@pytest.fixture
def list_(aws: Aws, clock: FakeClock) -> Suppressions:
    """The suppression list."""
    return Suppressions(aws.dynamodb, SUPPRESSIONS, clock)


@pytest.fixture
def runs(aws: Aws, clock: FakeClock) -> Runs:
    """The runs of campaigns."""
    return Runs(aws.dynamodb, RUNS, clock=clock)


@pytest.fixture(autouse=True)
def _metrics() -> Iterator[None]:
    telemetry.metrics.clear_metrics()
    yield
    telemetry.metrics.clear_metrics()


@pytest.fixture
def preferences(aws: Aws, clock: FakeClock) -> Preferences:
    """Return the recipients' choices about topics."""
    return Preferences(aws.dynamodb, PREFERENCES, clock)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[dict[str, Any]]]:
    """The log lines so far."""
    stream = io.StringIO()
    monkeypatch.setattr(telemetry.logger.registered_handler, "stream", stream)
    return lambda: [json.loads(line) for line in stream.getvalue().splitlines()]


@pytest.fixture
def counted() -> Callable[[], dict[str, float]]:
    """Return the counts of this test so far, by the metric's name."""
    return lambda: {name: sum(values) for name, values in _metrics_in("Count").items()}


@pytest.fixture
def timed() -> Callable[[], dict[str, list[float]]]:
    """The times that this test has measured so far, in milliseconds, by the metric's name."""
    return lambda: _metrics_in("Milliseconds")


def _metrics_in(unit: str) -> dict[str, list[float]]:
    found = telemetry.metrics.metric_set.items()
    return {name: metric["Value"] for name, metric in found if metric["Unit"] == unit}


@pytest.fixture(scope="module", autouse=True)
def _fresh_clients() -> Iterator[None]:
    """Forget the library's clients, which last as long as the process, before and after a module: those of
    tests/ops have another region."""
    _forget_clients()
    yield
    _forget_clients()


def _forget_clients() -> None:
    made = (
        clients.dynamodb,
        clients.dynamodb_once,
        clients.sqs,
        clients.s3,
        clients.secretsmanager,
    )
    for make in (*made, clients.sesv2, clients.sms, clients.sns):
        make.cache_clear()
