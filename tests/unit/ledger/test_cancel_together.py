"""Messages of a stopped run, which are cancelled together."""

from typing import Any

import pytest

from mailroom.clock import iso
from mailroom.ledger.claims import Completed
from mailroom.ledger.items import MARK, MAX_HISTORY
from mailroom.ledger.ledger import Ledger
from mailroom.ledger.observer import observe
from mailroom.ledger.waits import OUTSIDE_WINDOW, SHARDS, WaitingRow
from mailroom.message.message import Key, Message
from tests.support.told import ses_event
from tests.support.unit.fakes import Meddler
from tests.support.unit.shared import (
    KEY,
    LEASE,
    LEDGER,
    NOW,
    NOW_MS,
    TTL,
    Aws,
    FakeClock,
    claimed,
    crash,
    mail,
)
from tests.support.unit.verbs import OWN_VERBS, watched
from tests.support.unit.waiting import HOUR, hold, waits_of

STOPPED = ("stopped", "its run was stopped")


def cancel(ledger: Ledger, *messages: Message) -> list[str]:
    """Cancel messages together, and return the ids of the cancelled messages."""
    keys = ledger.cancel_together([(message, NOW - 60) for message in messages], *STOPPED)
    return [key.id for key in keys]


def due_rows(ledger: Ledger) -> list[WaitingRow]:
    return [row for shard in range(SHARDS) for row in waits_of(ledger).due(shard, NOW + 2 * HOUR)]


def test_ten_messages_are_cancelled_in_one_call(aws: Aws, clock: FakeClock) -> None:
    ledger, client = watched(aws, clock)
    messages = [mail(f"m-{number}", callback_url="https://app.example/hook") for number in range(10)]
    assert cancel(ledger, *messages) == [message.id for message in messages]
    assert client.names() == ["transact_write_items"]
    found = aws.item("m-7")
    assert (found["status"], found["completedAt"], found["attempts"]) == ("cancelled", NOW_MS, 1)
    assert found["error"] == {"code": STOPPED[0], "message": STOPPED[1]}
    assert found["history"] == [{"at": NOW_MS, "status": "cancelled", "code": "stopped"}]
    assert (found["to"], found["callback_url"], found["callbacks"]) == (
        *("vincent@example.com", "https://app.example/hook"),
        {},
    )
    assert found["putAt"] == (NOW - 60) * 1000
    assert (found["ttl"], found["updatedAt"]) == (NOW + TTL, iso(NOW))
    assert ledger.claim(mail("m-7")) == Completed()


def test_a_message_that_is_twice_in_one_call_is_cancelled_once(ledger: Ledger, aws: Aws) -> None:
    assert cancel(ledger, mail(), mail()) == ["m-1"]
    assert aws.item()["attempts"] == 1


def test_a_message_whose_claim_was_released_is_cancelled(ledger: Ledger, aws: Aws) -> None:
    ledger.release(claimed(ledger), "retry", "slow down")
    assert cancel(ledger, mail()) == ["m-1"]
    assert (aws.item()["status"], "trouble" in aws.item()) == ("cancelled", False)


def test_only_the_next_attempt_of_a_reopened_message_is_cancelled(ledger: Ledger, aws: Aws) -> None:
    ledger.fail(claimed(ledger), "rejected", "no")
    assert ledger.reopen(KEY, aws.item()) == 2
    assert cancel(ledger, mail(attempt=1)) == []
    assert cancel(ledger, mail(attempt=3)) == []
    assert cancel(ledger, mail(attempt=2)) == ["m-1"]
    assert (aws.item()["status"], aws.item()["attempts"]) == ("cancelled", 2)


def is_claimed(ledger: Ledger, _clock: FakeClock) -> None:
    claimed(ledger)


def crashes(ledger: Ledger, clock: FakeClock) -> None:
    crash(ledger, clock)


def is_in_doubt(ledger: Ledger, clock: FakeClock) -> None:
    crash(ledger, clock)
    ledger.release(claimed(ledger), "in_doubt", "its outcome is unknown")


def is_sent(ledger: Ledger, _clock: FakeClock) -> None:
    ledger.complete(claimed(ledger), "ses", "p-1")


def is_accepted(ledger: Ledger, clock: FakeClock) -> None:
    crash(ledger, clock)
    observe(ledger, [ses_event(KEY, "delivered")])


def is_submitted(ledger: Ledger, _clock: FakeClock) -> None:
    claim = claimed(ledger)
    OWN_VERBS["checkpoint"](ledger, claim)
    ledger.hand_back(claim)


def has_failed(ledger: Ledger, _clock: FakeClock) -> None:
    ledger.fail(claimed(ledger), "rejected", "no")


def is_cancelled(ledger: Ledger, _clock: FakeClock) -> None:
    ledger.cancel(KEY)


def has_a_later_attempt(ledger: Ledger, _clock: FakeClock) -> None:
    ledger.retry_later(claimed(ledger), "busy", "no")


@pytest.mark.parametrize(
    "becomes",
    [
        *(is_claimed, crashes, is_in_doubt, is_sent, is_accepted, is_submitted, has_failed, is_cancelled),
        has_a_later_attempt,
    ],
)
def test_a_message_that_is_claimed_may_have_been_sent_or_has_ended_is_not_cancelled_with_others(
    ledger: Ledger, aws: Aws, clock: FakeClock, becomes: Any
) -> None:
    becomes(ledger, clock)
    before = aws.item()
    assert cancel(ledger, mail("m-0"), mail(), mail("m-2")) == ["m-0", "m-2"]
    assert aws.item() == before


def test_a_worker_that_claims_a_message_during_its_cancellation_keeps_its_claim(
    ledger: Ledger, aws: Aws, clock: FakeClock
) -> None:
    claimed(ledger, mail("m-0"))

    def overtaken(real: Any, **request: Any) -> Any:
        try:
            return real(**request)
        finally:
            claimed(ledger, mail("m-1"))  # after the call that the claim of m-0 has cancelled

    client: Any = Meddler(aws.dynamodb, transact_write_items=overtaken)
    other = Ledger(client, LEDGER, lease=LEASE, ttl=TTL, clock=clock)
    assert cancel(other, mail("m-0"), mail("m-1")) == []
    assert [aws.item(id_)["status"] for id_ in ("m-0", "m-1")] == ["sending", "sending"]


# Messages that wait


def test_waiting_messages_are_cancelled_in_one_call_and_lose_their_waits(aws: Aws, clock: FakeClock) -> None:
    ledger, client = watched(aws, clock)
    for number in range(10):
        hold(ledger, mail(f"m-{number}"), reason=OUTSIDE_WINDOW)
    waiting = due_rows(ledger)
    client.calls.clear()
    assert waits_of(ledger).cancel_together(waiting, *STOPPED) == [True] * 10
    assert client.names() == ["transact_write_items"]
    assert due_rows(ledger) == []
    found = aws.item("m-7")
    assert (found["status"], found["attempts"], found["error"]["code"]) == ("cancelled", 1, "stopped")
    assert found["history"] == [{"at": NOW_MS, "status": "cancelled", "code": "stopped"}]
    assert not {*MARK} & found.keys()


def test_an_old_index_row_does_not_cancel_a_message_that_waits_anew_is_claimed_or_has_ended(
    ledger: Ledger, aws: Aws
) -> None:
    for id_ in ("again", "claimed", "cancelled", "waits"):
        hold(ledger, mail(id_))
    old = due_rows(ledger)
    hold(ledger, mail("again"), version="v-2")
    claimed(ledger, mail("claimed"))
    ledger.cancel(Key("cancelled", "mail"))
    before = {row.key.id: aws.item(row.key.id) for row in old}
    results = waits_of(ledger).cancel_together(old, *STOPPED)
    assert {row.key.id for row, done in zip(old, results, strict=True) if done} == {"waits"}
    assert {id_ for id_ in before if aws.item(id_) != before[id_]} == {"waits"}


def test_a_message_with_a_full_history_is_cancelled_with_others(ledger: Ledger, aws: Aws) -> None:
    for id_ in ("m-1", "m-2"):
        hold(ledger, mail(id_))
    full = [{"at": NOW_MS, "status": "retrying"}] * MAX_HISTORY
    aws.put(LEDGER, **{**aws.item(), "history": full})
    assert waits_of(ledger).cancel_together(due_rows(ledger), *STOPPED) == [True, True]
    assert [aws.item(id_)["error"]["code"] for id_ in ("m-1", "m-2")] == ["stopped", "stopped"]
