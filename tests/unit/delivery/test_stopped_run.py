"""Messages of a campaign's run that is stopped, at their sender."""

from typing import Any

import pytest

from mailroom.campaigns.runs import Runs
from mailroom.ledger.run_states import REASON
from mailroom.ledger.waits import DAY_USED_UP
from mailroom.message.outcome import Retry, Sent
from mailroom.recipients.choices import Suppressions
from tests.support.unit.fakes import Meddler, client_error, failing
from tests.support.unit.post import Counted, Make
from tests.support.unit.releasing import Waiting
from tests.support.unit.shared import BUDGETS, NOW, RUNS, SUPPRESSIONS, Aws, FakeClock, item

BULK: dict[str, Any] = {"bulk": True, "runs_table": RUNS}


@pytest.fixture
def id_(runs: Runs) -> str:
    """Id of a message of a run that is stopped."""
    runs.begin("weekly", "r", "start", "2026-11-18T13:00:00Z")
    run = runs.read("weekly", "r")
    assert run is not None
    runs.stop("weekly", "r", "an operator")
    return run.id_of("ada")


def test_a_message_of_a_stopped_run_ends_as_cancelled_and_other_messages_are_sent(
    post: Make, aws: Aws, counted: Counted, id_: str
) -> None:
    worker = post(**BULK)
    assert worker.handle(item(id=id_), item(id="m-2")) == {}
    assert worker.submitted == ["m-2"]
    assert aws.item(id_)["status"] == "cancelled"
    assert aws.item(id_)["error"] == {"code": "stopped", "message": REASON}
    assert counted() == {"Cancelled": 1, "Sent": 1}


def test_a_message_of_a_stopped_run_does_not_use_the_daily_limit(post: Make, aws: Aws, id_: str) -> None:
    day = {"budgets_table": BUDGETS, "per_day": [("0001-01-01", 1)], "budgets": aws.dynamodb}
    worker = post(**BULK, **day)
    worker.handle(item(id=id_, lane="bulk"), item(id="m-2", lane="bulk"))
    assert worker.submitted == ["m-2"]


def test_a_message_is_retried_if_its_stopped_run_is_started_again_before_the_message_is_cancelled(
    post: Make, aws: Aws, runs: Runs, id_: str
) -> None:
    looks = iter((lambda: None, lambda: runs.begin("weekly", "r", "again", "2026-11-18T13:00:00Z")))

    def look(real: Any, **arguments: Any) -> Any:
        next(looks)() if RUNS in arguments["RequestItems"] else None
        return real(**arguments)

    worker = post(**BULK, budgets=Meddler(aws.dynamodb, batch_get_item=look))
    assert worker.handle(item(id=id_)) == {"r-0": 1}
    assert (worker.submitted, "completedAt" in aws.item(id_)) == ([], False)
    assert worker.handle(item(id=id_), receives=2) == {}
    assert worker.submitted == [id_]


def test_a_message_whose_run_cannot_be_read_is_retried_and_other_messages_are_sent(
    post: Make, aws: Aws, runs: Runs, id_: str
) -> None:
    throttled = failing(*[client_error("ProvisionedThroughputExceededException")] * 2)
    worker = post(**BULK, budgets=Meddler(aws.dynamodb, batch_get_item=throttled))
    assert worker.handle(item(id=id_), item(id="m-2")) == {"r-0": 4}
    assert (worker.submitted, aws.item(id_)) == (["m-2"], {})


@pytest.mark.parametrize(
    ("errors", "tables"),
    [
        pytest.param(0, [2, 1], id="read together, and once more before the message is cancelled"),
        pytest.param(1, [2, 1, 1], id="the call fails"),
    ],
)
def test_a_batch_reads_suppressions_and_runs_in_one_call_and_separately_if_that_call_fails(
    post: Make, aws: Aws, clock: FakeClock, id_: str, errors: int, tables: list[int]
) -> None:
    throttled = failing(*[client_error("ProvisionedThroughputExceededException")] * errors)
    client: Any = Meddler(aws.dynamodb, batch_get_item=throttled)
    post(suppressions=Suppressions(client, SUPPRESSIONS, clock), **BULK).handle(item(id=id_))
    reads = [call["RequestItems"] for name, call in client.calls if name == "batch_get_item"]
    assert ([len(read) for read in reads], aws.item(id_)["error"]["code"]) == (tables, "stopped")
    # An operator's stop is in force at once, so runs are read consistently; choices need not be.
    assert all(read[RUNS].get("ConsistentRead") for read in reads if RUNS in read)
    assert not any("ConsistentRead" in read[SUPPRESSIONS] for read in reads if SUPPRESSIONS in read)


def test_a_lane_without_campaigns_reads_no_run(post: Make, aws: Aws, id_: str) -> None:
    client = Meddler(aws.dynamodb)
    worker = post(Retry("slow down"), Sent("p-1"), bulk=True, budgets=client)
    worker.handle(item(id=id_))
    assert "batch_get_item" not in client.names()


def test_release_cancels_the_messages_of_a_stopped_run_without_using_the_daily_limit(
    waiting: Waiting, id_: str
) -> None:
    waiting.limit(1)
    waiting.line_up(id_, "m-2")
    waiting.release_line()
    assert [entry["MessageBody"].count('"m-2"') for entry in waiting.sent] == [1]
    ended = waiting.aws.item(id_)
    assert (ended["status"], ended["error"]["code"], waiting.marked, waiting.held) == (
        *("cancelled", "stopped"),
        [],
        [],
    )


def test_release_hands_over_a_message_to_its_worker_if_the_run_of_the_message_cannot_be_read(
    waiting: Waiting, id_: str
) -> None:
    throttled = failing(client_error("ProvisionedThroughputExceededException"))

    def look(real: Any, **arguments: Any) -> Any:
        return throttled(real, **arguments) if RUNS in arguments["RequestItems"] else real(**arguments)

    waiting.hold(id_, DAY_USED_UP, NOW)
    waiting.meddle(batch_get_item=look)
    waiting.release_due()
    assert len(waiting.sent) == 1
