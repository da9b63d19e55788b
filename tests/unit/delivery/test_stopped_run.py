"""Messages of a campaign's run that is stopped or does not answer, at their sender and in the rounds of
`release`."""

from collections.abc import Callable
from typing import Any

import pytest

from mailroom.campaigns.runs import Runs
from mailroom.ledger.items import RUN_UNKNOWN
from mailroom.ledger.ledger import Ledger
from mailroom.ledger.run_states import REASON
from mailroom.ledger.status_reader import of_ledger
from mailroom.ledger.waits import DAY_USED_UP
from mailroom.message.outcome import Sent, Unknowable
from mailroom.recipients.choices import Suppressions
from tests.support.campaign_start import of_run
from tests.support.unit.fakes import Meddler, client_error, failing
from tests.support.unit.post import Counted, Make
from tests.support.unit.releasing import Waiting
from tests.support.unit.run_messages import lose_run, mail_of, read_run, start_run
from tests.support.unit.shared import (
    BUDGETS,
    LEASE,
    NOW,
    RUNS,
    SUPPRESSIONS,
    Aws,
    FakeClock,
    Item,
    claimed,
    item,
)

BULK: dict[str, Any] = {"bulk": True, "runs_table": RUNS}
Timed = Callable[[], dict[str, list[float]]]


@pytest.fixture
def stopped_messages(runs: Runs) -> list[Item]:
    """Ten messages of a run that is stopped."""
    run = start_run(runs)
    runs.stop("weekly", "r")
    return [item(**of_run(run, f"p{number}"), lane="bulk") for number in range(10)]


# At the sender


def test_a_message_of_a_stopped_run_ends_as_cancelled_and_other_messages_are_sent(
    make_post: Make, aws: Aws, counted: Counted, stopped_messages: list[Item]
) -> None:
    worker = make_post(**BULK)
    assert worker.handle(stopped_messages[0], item(id="m-2")) == {}
    assert worker.submitted == ["m-2"]
    ended = aws.item(stopped_messages[0]["id"])
    assert (ended["status"], ended["error"]) == ("cancelled", {"code": "stopped", "message": REASON})
    assert (ended["to"], ended["attempts"]) == ("vincent@example.com", 1)
    assert ended["campaign_start"] == stopped_messages[0]["campaign_start"]
    assert counted() == {"Cancelled": 1, "Sent": 1}


def test_a_batch_of_ten_messages_of_a_stopped_run_is_cancelled_by_one_read_and_one_write(
    make_post: Make, aws: Aws, counted: Counted, stopped_messages: list[Item]
) -> None:
    client = Meddler(aws.dynamodb)
    worker = make_post(dynamodb=client, budgets=client, **BULK)
    assert worker.handle(*stopped_messages) == {}
    assert client.names() == ["batch_get_item", "transact_write_items"]
    assert {aws.item(each["id"])["status"] for each in stopped_messages} == {"cancelled"}
    assert counted() == {"Cancelled": 10}


def test_messages_of_a_stopped_run_are_cancelled_one_by_one_if_they_cannot_be_cancelled_together(
    make_post: Make, aws: Aws, counted: Counted, stopped_messages: list[Item]
) -> None:
    client = Meddler(aws.dynamodb, transact_write_items=failing(client_error("InternalServerError")))
    worker = make_post(dynamodb=client, **BULK)
    assert worker.handle(*stopped_messages[:3]) == {}
    assert worker.submitted == []
    assert [aws.item(each["id"])["error"]["code"] for each in stopped_messages[:3]] == ["stopped"] * 3
    assert counted() == {"Cancelled": 3}


def test_a_message_of_a_stopped_run_that_another_worker_has_claimed_is_not_cancelled(
    make_post: Make, aws: Aws, runs: Runs, ledger: Ledger, stopped_messages: list[Item]
) -> None:
    claimed(ledger, mail_of(read_run(runs), "p0"))
    assert make_post(**BULK).handle(*stopped_messages[:2]) == {"r-0": LEASE + 1}
    assert [aws.item(each["id"])["status"] for each in stopped_messages[:2]] == ["sending", "cancelled"]


def test_a_message_of_a_stopped_run_that_may_have_been_sent_ends_with_an_unknown_outcome(
    make_post: Make, aws: Aws, runs: Runs, ledger: Ledger, clock: FakeClock, stopped_messages: list[Item]
) -> None:
    claimed(ledger, mail_of(read_run(runs), "p0"))
    clock.advance(LEASE)
    assert make_post(evidence=Unknowable(), **BULK).handle(stopped_messages[0], receives=2) == {}
    ended = aws.item(stopped_messages[0]["id"])
    assert (ended["status"], ended["error"]["code"]) == ("failed", "outcome_unknown")


def test_if_a_stopped_run_is_started_again_only_messages_of_its_earlier_start_are_cancelled(
    make_post: Make, aws: Aws, runs: Runs, stopped_messages: list[Item]
) -> None:
    again = item(**of_run(start_run(runs, start="again"), "ada"))
    worker = make_post(**BULK)
    assert worker.handle(stopped_messages[0], again) == {}
    assert worker.submitted == [again["id"]]
    assert aws.item(stopped_messages[0]["id"])["error"]["code"] == "stopped"


def test_a_message_of_a_stopped_run_does_not_use_the_daily_limit(
    make_post: Make, aws: Aws, stopped_messages: list[Item]
) -> None:
    day = {"budgets_table": BUDGETS, "per_day": [("0001-01-01", 1)], "budgets": aws.dynamodb}
    worker = make_post(**BULK, **day)
    worker.handle(stopped_messages[0], item(id="m-2", lane="bulk"))
    assert worker.submitted == ["m-2"]


@pytest.mark.parametrize(
    ("errors", "tables"),
    [pytest.param(0, [2], id="read together"), pytest.param(1, [2, 1], id="the call fails")],
)
def test_suppressions_and_runs_are_read_in_one_call_and_only_runs_are_read_again_if_it_fails(
    make_post: Make, aws: Aws, clock: FakeClock, stopped_messages: list[Item], errors: int, tables: list[int]
) -> None:
    throttled = failing(*[client_error("ProvisionedThroughputExceededException")] * errors)
    client: Any = Meddler(aws.dynamodb, batch_get_item=throttled)
    make_post(suppressions=Suppressions(client, SUPPRESSIONS, clock), **BULK).handle(stopped_messages[0])
    reads = [call["RequestItems"] for name, call in client.calls if name == "batch_get_item"]
    assert ([len(read) for read in reads], aws.item(stopped_messages[0]["id"])["error"]["code"]) == (
        tables,
        "stopped",
    )
    # An operator's stop is in force at once, so runs are read consistently; choices need not be.
    assert all(read[RUNS].get("ConsistentRead") for read in reads)
    assert not any("ConsistentRead" in read[SUPPRESSIONS] for read in reads if SUPPRESSIONS in read)


def test_a_message_without_a_campaign_start_is_sent_even_if_it_has_the_id_of_a_stopped_runs_message(
    make_post: Make, aws: Aws, stopped_messages: list[Item]
) -> None:
    client = Meddler(aws.dynamodb)
    worker = make_post(**BULK, budgets=client)
    worker.handle(item(id=stopped_messages[0]["id"]))
    assert (worker.submitted, client.names()) == ([stopped_messages[0]["id"]], [])


# A run that does not answer


def test_a_message_whose_run_cannot_be_read_waits_and_other_messages_are_sent(
    make_post: Make, aws: Aws, counted: Counted, stopped_messages: list[Item]
) -> None:
    throttled = failing(*[client_error("ProvisionedThroughputExceededException")] * 2)
    worker = make_post(**BULK, budgets=Meddler(aws.dynamodb, batch_get_item=throttled))
    assert worker.handle(stopped_messages[0], item(id="m-2")) == {}
    assert worker.submitted == ["m-2"]
    status = of_ledger(aws.item(stopped_messages[0]["id"]))
    assert (status.status, status.waits_for) == ("scheduled", RUN_UNKNOWN)
    assert counted() == {"WaitsForUnknownRun": 1, "Sent": 1}


@pytest.mark.parametrize("changes", [{}, {"runs_table": "not-deployed"}], ids=["no name", "no table"])
def test_a_message_of_a_run_waits_if_its_sender_function_cannot_find_the_table_of_runs(
    make_post: Make, aws: Aws, runs: Runs, changes: dict[str, Any]
) -> None:
    message = item(**of_run(start_run(runs), "ada"))
    worker = make_post(bulk=True, **changes)
    assert worker.handle(message, item(id="m-2")) == {}
    assert worker.submitted == ["m-2"]
    assert of_ledger(aws.item(message["id"])).waits_for == RUN_UNKNOWN


def test_a_message_that_may_have_been_sent_waits_in_its_queue_while_its_run_is_unknown(
    make_post: Make, aws: Aws, runs: Runs, ledger: Ledger, clock: FakeClock
) -> None:
    run = start_run(runs)
    claimed(ledger, mail_of(run, "ada"))
    clock.advance(LEASE)
    lost = lose_run(aws)
    message = item(**of_run(run, "ada"))
    worker = make_post(Sent("p-1"), evidence=Unknowable(), **BULK)
    assert worker.handle(message, receives=2) == {"r-0": 600}
    assert (worker.submitted, aws.item(message["id"])["trouble"]["code"]) == ([], RUN_UNKNOWN)
    aws.dynamodb.put_item(TableName=RUNS, Item=lost)
    assert worker.handle(message, receives=3) == {}
    assert worker.submitted == [message["id"]]


# In the rounds of `release`


def test_release_cancels_the_messages_of_a_stopped_run_without_using_the_daily_limit(
    waiting: Waiting, runs: Runs, counted: Counted
) -> None:
    run = start_run(runs)
    people = [mail_of(run, key) for key in ("ada", "bob")]
    waiting.limit(1)
    waiting.line_up(*people, "m-2")
    runs.stop("weekly", "r")
    waiting.release_line()
    assert [entry["MessageBody"].count('"m-2"') for entry in waiting.sent] == [1]
    ended = [waiting.aws.item(message.id) for message in people]
    assert [(each["status"], each["error"]) for each in ended] == [
        ("cancelled", {"code": "stopped", "message": REASON})
    ] * 2
    assert (waiting.marked, waiting.held, counted()["Cancelled"]) == ([], [], 2)
    assert waiting.dynamodb.names().count("transact_write_items") == 1


def test_release_cancels_a_message_of_a_stopped_run_even_if_the_history_of_the_message_is_full(
    waiting: Waiting, runs: Runs
) -> None:
    message = mail_of(start_run(runs), "ada")
    waiting.line_up(message)
    runs.stop("weekly", "r")
    entries = {"L": [{"M": {"status": {"S": "retrying"}, "at": {"N": "1"}}}] * 50}
    waiting.aws.dynamodb.update_item(
        TableName=waiting.ledger._table,
        Key={"id": {"S": message.id}, "event_type": {"S": "mail"}},
        UpdateExpression="SET history = :entries",
        ExpressionAttributeValues={":entries": entries},
    )
    waiting.release_line()
    assert waiting.aws.item(message.id)["error"]["code"] == "stopped"
    assert (waiting.sent, waiting.marked, waiting.held) == ([], [], [])


def test_a_due_message_waits_for_its_run_if_the_run_cannot_be_read(waiting: Waiting, runs: Runs) -> None:
    message = mail_of(start_run(runs), "ada")
    throttled = failing(client_error("ProvisionedThroughputExceededException"))

    def look(real: Any, **arguments: Any) -> Any:
        return throttled(real, **arguments) if RUNS in arguments["RequestItems"] else real(**arguments)

    waiting.hold(message, DAY_USED_UP, NOW)
    waiting.meddle(batch_get_item=look)
    waiting.release_due()
    assert (waiting.sent, waiting.marked) == ([], [message.id])
    waiting.release_line()
    waiting.release_line()
    assert len(waiting.sent) == 1


def test_messages_of_an_unknown_run_wait_until_the_run_can_be_read(
    waiting: Waiting, runs: Runs, timed: Timed
) -> None:
    run = start_run(runs)
    people = [mail_of(run, key) for key in ("ada", "bob", "eve")]
    lost = lose_run(waiting.aws)
    waiting.line_up(*people, "m-2")
    waiting.release_line()
    assert [entry["MessageBody"].count('"m-2"') for entry in waiting.sent] == [1]
    assert {of_ledger(waiting.aws.item(each.id)).waits_for for each in people} == {RUN_UNKNOWN}
    waiting.clock.advance(60)
    waiting.release_line()
    assert timed()["RunUnknown"] == [1_060_000]  # the age of the message that was put first
    waiting.aws.dynamodb.put_item(TableName=RUNS, Item=lost)
    waiting.release_line()
    assert (len(waiting.sent), waiting.marked, waiting.held) == (4, [], [])
    assert len(timed()["RunUnknown"]) == 1


def test_messages_of_a_run_whose_item_was_lost_are_cancelled_if_an_operator_stops_the_run(
    waiting: Waiting, runs: Runs
) -> None:
    message = mail_of(start_run(runs), "ada")
    lose_run(waiting.aws)
    waiting.hold(message, RUN_UNKNOWN, NOW, lines_up=True)
    waiting.clock.advance(60)
    assert runs.stop("weekly", "r", lost=True)
    waiting.release_line()
    assert waiting.aws.item(message.id)["error"]["code"] == "stopped"
    assert (waiting.sent, waiting.marked, waiting.held) == ([], [], [])
