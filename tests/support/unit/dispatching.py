"""A dispatcher of the tests' own stage."""

from collections.abc import Callable
from typing import Any

import pytest

from mailroom.channels.contracts import CONTRACTS
from mailroom.clock import iso
from mailroom.content.payloads import Payloads
from mailroom.content.versions import CurrentVersions
from mailroom.dispatch.dispatcher import Dispatcher, ScheduleWriter, Validator
from mailroom.http.url_policy import UrlPolicy
from mailroom.ledger.ledger import Ledger
from tests.support.unit.shared import BUCKET, GROUP, LEDGER, NOW, TTL, Aws, FakeClock, Item

Log = Callable[[], list[dict[str, Any]]]
Counted = Callable[[], dict[str, float]]
ROLE = "arn:aws:iam::123456789012:role/mailroom-test-schedules"
TARGET = "arn:aws:sqs:eu-central-1:123456789012:mailroom-test-scheduled"


def made(
    aws: Aws,
    clock: FakeClock,
    *,
    sqs: Any = None,
    dynamodb: Any = None,
    scheduler: Any = None,
    lanes: str = "both",
    versions: CurrentVersions | None = None,
) -> Dispatcher:
    routes = {"normal": aws.urls["mail"], "bulk": aws.urls["mail-bulk"]}
    if lanes == "normal":
        del routes["bulk"]
    return Dispatcher(
        {"mail": routes},
        Validator(
            CONTRACTS,
            {"mail": routes},
            payloads=Payloads(aws.s3, BUCKET),
            callbacks=UrlPolicy(),
            clock=clock,
        ),
        ledger=Ledger(dynamodb or aws.dynamodb, LEDGER, lease=0, ttl=TTL, clock=clock),
        schedules=ScheduleWriter(
            scheduler or aws.scheduler,
            GROUP,
            role_arn=ROLE,
            target_arn=TARGET,
            dead_letter_arn=TARGET + "-dlq",
        ),
        sqs=sqs or aws.sqs,
        clock=clock,
        versions=versions,
    )


@pytest.fixture
def dispatcher(aws: Aws, clock: FakeClock) -> Dispatcher:
    return made(aws, clock)


def numbered(*items: Item) -> list[tuple[str, Item]]:
    return [(str(100 + at), each) for at, each in enumerate(items)]


def at(seconds: float) -> str:
    """The time that many seconds from now, as a producer writes it."""
    return iso(NOW + seconds)
