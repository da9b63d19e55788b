"""A dispatcher of the tests' own stage."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from mailroom.channels.contracts import CONTRACTS
from mailroom.clock import iso
from mailroom.content.payloads import Payloads
from mailroom.content.versions import CurrentVersions
from mailroom.dispatch.dispatcher import Dispatcher, Validator
from mailroom.http.url_policy import UrlPolicy
from mailroom.ledger.ledger import Ledger
from mailroom.ledger.waits import Waits
from tests.support.unit.shared import BUCKET, LEDGER, NOW, TTL, Aws, FakeClock, Item

Log = Callable[[], list[dict[str, Any]]]
Counted = Callable[[], dict[str, float]]


def dispatcher_of(
    aws: Aws,
    clock: FakeClock,
    *,
    sqs: Any = None,
    dynamodb: Any = None,
    lanes: str = "both",
    channels: Sequence[str] = ("mail",),
    versions: CurrentVersions | None = None,
) -> Dispatcher:
    routes = {"normal": aws.urls["mail"], "bulk": aws.urls["mail-bulk"]}
    if lanes == "normal":
        del routes["bulk"]
    by_channel = dict.fromkeys(channels, routes)
    return Dispatcher(
        by_channel,
        Validator(
            CONTRACTS,
            by_channel,
            payloads=Payloads(aws.s3, BUCKET),
            callbacks=UrlPolicy(),
            clock=clock,
        ),
        ledger=Ledger(dynamodb or aws.dynamodb, LEDGER, lease=0, ttl=TTL, clock=clock),
        waits=Waits(dynamodb or aws.dynamodb, LEDGER, TTL, clock),
        sqs=sqs or aws.sqs,
        clock=clock,
        versions=versions,
    )


@pytest.fixture
def dispatcher(aws: Aws, clock: FakeClock) -> Dispatcher:
    return dispatcher_of(aws, clock)


def numbered(*items: Item) -> list[tuple[str, Item]]:
    return [(str(100 + at), each) for at, each in enumerate(items)]


def iso_after(seconds: float) -> str:
    """The time that many seconds from now, as a producer writes it."""
    return iso(NOW + seconds)
