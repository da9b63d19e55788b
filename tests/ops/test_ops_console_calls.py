"""The calls that a page of the console costs."""

import json
import random
from collections.abc import Callable
from functools import partial
from unittest.mock import Mock

import pytest

from mailroom.aws.dynamo_values import image_of
from mailroom.campaigns.runs import Runs
from mailroom_ops.console.site import KEPT_SECONDS
from mailroom_ops.messages.traffic import Traffic
from tests.support import ROOT
from tests.support.ops.calls import CountedCalls
from tests.support.ops.campaign import NOW
from tests.support.ops.console import Browser
from tests.support.ops.repair import RepairStage, repair_stage
from tests.support.ops.search import LEDGER, index
from tests.support.ops.shared import RUNS, make_table

STAGE = repair_stage
CHANNELS = {
    "mail": ("mail", "mail-bulk"),
    "sms": ("sms", "sms-bulk"),
    "push": ("push", "push-bulk"),
    "fax": ("fax.fifo",),
    "webhook": ("webhook",),
    "letter": ("letter", "letter-bulk"),
}
"""Queues of the lanes normal and bulk of each channel; `letter` is an own channel."""
OTHERS = ("mail-fallback", "mail-bulk-fallback", "fax-retry", "feedback", "collect", "audience")
BESIDE_QUEUES = {
    "ListQueues": 1,
    "GetFunctionConfiguration": 1,
    "ListEventSourceMappings": 1,
    "DescribeAlarms": 1,
    "GetMetricData": 2,
    "BatchGetItem": 1,
    "Scan": 1,
}
"""Calls of the overview besides those for each queue."""


def quiet(_: RepairStage) -> None:
    """Leave a stage unchanged."""


def troubled(stage: RepairStage) -> None:
    """Let a stage have each trouble that the overview lists."""
    stage.functions.mappings |= {"mail-bulk": "Disabled", "sms": "Disabled"}
    spent = {f"used_{hour}": 1 << 20 for hour in (int(NOW) // 3600, 1 << 19)}
    for channel in ("mail", "sms"):
        item = image_of({"name": channel, "line_at": int(NOW), **spent})
        stage.dynamodb.put_item(TableName="budgets", Item=item)
    for number in range(30):
        runs = Runs(stage.dynamodb, RUNS, clock=partial(float, NOW + number))
        assert runs.begin("spring", f"r-{number}", "s", "2026-11-21T09:00:00Z")
        assert runs.pause("spring", f"r-{number}", "since noon by ada: a wrong link")
    for queue in ("mail-dlq", "sms-dlq"):
        stage.sqs.send_message(QueueUrl=stage.urls[queue], MessageBody="{}")


def fill_with_sent(count: int) -> Callable[[RepairStage], None]:
    """Let a stage have sent so many messages, all of which are in the search."""

    def fill(stage: RepairStage) -> None:
        drawn = random.Random(count)
        for number in range(count):
            (channel,) = drawn.choices(("mail", "sms", "push"), (80, 15, 5))
            (status,) = drawn.choices(("delivered", "sent", "bounced", "failed"), (80, 15, 3, 2))
            item = {"id": f"m-{number}", "event_type": channel, "status": status, "ttl": 1 << 33}
            about = {"to": "+16175551234", "putAt": int(NOW - number) * 1000}
            stage.dynamodb.put_item(TableName=LEDGER, Item=image_of({**item, **about}))
        index(stage.dynamodb)

    return fill


def with_all_channels(stage: RepairStage) -> None:
    """Add the queues of all channels, with their dead-letter queues and daily limits."""
    for queue in (*OTHERS, *(queue for queues in CHANNELS.values() for queue in queues)):
        base, dot, fifo = queue.partition(".")
        for name in (queue, f"{base}-dlq{dot}{fifo}"):
            kind = {"FifoQueue": "true"} if fifo else {}
            url = (
                stage.urls.get(name)
                or stage.sqs.create_queue(QueueName=f"mailroom-dev-{name}", Attributes=kind)["QueueUrl"]
            )
            stage.urls[name] = url
            stage.functions.mappings.setdefault(name, "Enabled")
    routes = {
        channel: dict(zip(("normal", "bulk"), (stage.urls[queue] for queue in queues), strict=False))
        for channel, queues in CHANNELS.items()
    }
    line = {"per_second": 5, "per_day": [["0001-01-01", 10_000]], "reserve": 0.1}
    lines = {channel: line for channel, queues in CHANNELS.items() if len(queues) > 1}
    stage.variables["mailroom-dev-release"] |= {"ROUTES": json.dumps(routes), "LINES": json.dumps(lines)}
    make_table(stage.dynamodb, "budgets", "name")


QUIET = ("Nothing: no alarm rings",)
TROUBLED = (
    "1 dead letter by mail",
    "1 dead letter by sms",
    "Bulk by mail waits until about",
    "Bulk by sms waits until about",
    "Paused Mail, bulk: 0 wait",
    "Paused SMS, normal: 0 wait",
    "Run r-29 of spring",
    "20 further runs",
)


@pytest.mark.parametrize(
    ("happened", "shown"),
    [(quiet, QUIET), (troubled, TROUBLED), (fill_with_sent(20_000), QUIET)],
    ids=["quiet", "troubled", "20,000"],
)
def test_the_overview_makes_a_call_to_aws_for_each_queue_and_eight_others(
    stage: RepairStage,
    monkeypatch: pytest.MonkeyPatch,
    happened: Callable[[RepairStage], None],
    shown: tuple[str, ...],
) -> None:
    with_all_channels(stage)
    happened(stage)
    browser = Browser(stage.session, clock=lambda: NOW).enter()
    calls = CountedCalls(monkeypatch, stage.functions)
    page = browser.get("/")
    assert page.status == 200
    assert calls.pop("GetQueueAttributes") == len(stage.urls)
    assert calls == BESIDE_QUEUES
    assert calls.total() == 8
    for words in shown:
        assert words in page.words


def test_the_documented_price_of_an_hour_of_the_overview_is_the_computed_one() -> None:
    client = Mock()
    client.get_metric_data.return_value = {"MetricDataResults": []}
    routes = {
        channel: {"normal": f"https://q/mailroom-prod-{queues[0]}"}
        for channel, queues in CHANNELS.items()
        if channel != "letter"
    }
    routes["mail"]["bulk"] = "https://q/mailroom-prod-mail-bulk"
    Traffic(client, "prod", routes, NOW)
    metrics = sum(len(call.kwargs["MetricDataQueries"]) for call in client.get_metric_data.mock_calls)
    dollars = metrics * 3_600 / KEPT_SECONDS * 0.01 / 1_000  # $0.01 for 1,000 metrics
    page = (ROOT / "docs" / "how-to" / "support-team.md").read_text()
    assert f"for about ${dollars:.2f} an hour" in page
