"""Follow-ups at their sender: the ledger is asked right before the submit, and decides once."""

from typing import Any

import pytest

from mailroom.ledger.ledger import Ledger
from mailroom.message.outcome import Repeatable, Retry, Sent
from tests.support.unit.fakes import Meddler, client_error, failing
from tests.support.unit.post import Counted, Make
from tests.support.unit.shared import LEDGER, NOW_MS, Aws, FakeClock, crash, item

OTHER = {"id": "other", "event_type": "mail", "status": ["sent"]}


def follow_up(*unless: Any, **changes: Any) -> dict[str, Any]:
    return item(send_at="2026-11-20T09:00:00Z", unless=[*unless] or [OTHER], **changes)


def other(aws: Aws, status: str, *, id_: str = "other", **attributes: Any) -> None:
    aws.put(LEDGER, id=id_, event_type="mail", status=status, startedAt=1, **attributes)


def test_a_message_whose_condition_holds_is_cancelled_and_its_error_names_the_condition(
    make_post: Make, aws: Aws, counted: Counted
) -> None:
    other(aws, "delivered")
    worker = make_post()
    assert worker.handle(follow_up({**OTHER, "id": "unknown"}, OTHER)) == {}
    ended = aws.item()
    assert (worker.submitted, ended["status"], ended["completedAt"]) == ([], "cancelled", NOW_MS)
    assert ended["error"] == {"code": "unless", "message": "unless: mail other is delivered"}
    assert ended["unless_fulfilled"] == {"id": "other", "event_type": "mail", "status": "delivered"}
    assert counted() == {"Cancelled": 1}
    assert worker.handle(follow_up(), receives=2) == {}
    assert (worker.submitted, aws.item()["attempts"]) == ([], 1)


@pytest.mark.parametrize("status", ["", "scheduled", "sending", "retrying", "undelivered", "failed"])
def test_a_message_whose_condition_does_not_hold_is_sent(make_post: Make, aws: Aws, status: str) -> None:
    if status:
        other(aws, status)
    worker = make_post()
    worker.handle(follow_up())
    assert (worker.submitted, aws.item()["status"]) == (["m-1"], "sent")
    assert aws.item()["unless"] == [OTHER]


@pytest.mark.parametrize(
    ("words", "ends"), [(["failed", "sent"], "sent"), (["outcome_unknown"], "cancelled")]
)
def test_an_unknown_outcome_of_the_named_message_fulfils_only_the_condition_outcome_unknown(
    make_post: Make, aws: Aws, words: list[str], ends: str
) -> None:
    other(aws, "failed", error={"code": "outcome_unknown", "message": "held"})
    make_post().handle(follow_up({**OTHER, "status": words}))
    assert aws.item()["status"] == ends


def test_the_condition_of_a_retried_message_is_checked_again_before_its_next_submit(
    make_post: Make, aws: Aws
) -> None:
    worker = make_post(Retry("slow down"), Sent("p-1"))
    worker.handle(follow_up())
    other(aws, "sent")
    worker.handle(follow_up(), receives=2)
    assert (worker.submitted, aws.item()["status"]) == (["m-1"], "cancelled")


@pytest.mark.parametrize("evidence", [None, Repeatable(1e12, lambda message: message)])
def test_a_message_that_may_have_been_sent_fails_as_outcome_unknown_even_if_its_condition_holds(
    make_post: Make, aws: Aws, ledger: Ledger, clock: FakeClock, evidence: Any
) -> None:
    crash(ledger, clock)
    other(aws, "delivered")
    worker = make_post(evidence=evidence)
    assert worker.handle(follow_up(), receives=2) == {}
    assert (worker.submitted, aws.item()["status"]) == ([], "failed")
    assert aws.item()["error"]["code"] == "outcome_unknown"
    assert "unless: mail other is delivered" in aws.item()["error"]["message"]


def test_the_ledger_items_in_a_messages_conditions_are_read_in_one_call_and_each_item_once(
    make_post: Make, aws: Aws
) -> None:
    dynamodb = Meddler(aws.dynamodb)
    worker = make_post(dynamodb=dynamodb)
    names = [{**OTHER, "id": f"other-{place % 3}"} for place in range(5)]
    worker.handle(follow_up(*names), item(id="m-2"))
    assert dynamodb.names().count("batch_get_item") == 1
    (call,) = [call for name, call in dynamodb.calls if name == "batch_get_item"]
    assert len(call["RequestItems"][LEDGER]["Keys"]) == 3
    assert call["RequestItems"][LEDGER]["ConsistentRead"]


def test_a_message_whose_conditions_cannot_be_read_is_retried_and_not_sent(make_post: Make, aws: Aws) -> None:
    throttled = failing(client_error("ProvisionedThroughputExceededException"))
    worker = make_post(dynamodb=Meddler(aws.dynamodb, batch_get_item=throttled))
    assert worker.handle(follow_up()) == {"r-0": 4}
    assert (worker.submitted, aws.item()["trouble"]["code"]) == ([], "unprepared")
    worker.handle(follow_up(), receives=2)
    assert (worker.submitted, aws.item()["status"]) == (["m-1"], "sent")
