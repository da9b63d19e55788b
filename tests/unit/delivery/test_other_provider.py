"""A channel with two providers: when a message moves to the queue of the other one."""

from collections.abc import Callable
from typing import Any

import pytest

from mailroom.aws.queues import DUE_AT, PUT_AT
from mailroom.budget import Budget
from mailroom.channels.mail.contract import Mail
from mailroom.environment import OtherProvider
from mailroom.ledger.ledger import Ledger
from mailroom.message.message import Key
from mailroom.message.outcome import DayUsedUp, Misconfigured, NotReady, Outcome, Rejected, Retry, Sent
from tests.support.unit.post import Counted, Make, Post
from tests.support.unit.shared import BUDGETS, NOW, Aws, FakeClock, crash, item

TRIES, SECONDS = 3, 60
THROTTLED, PAUSED, FULL = Retry("429", 0), Misconfigured("paused"), DayUsedUp("full")
Begin = Callable[..., Post]


@pytest.fixture
def first(make_post: Make, aws: Aws) -> Begin:
    """Senders of the first provider, whose fallback has the queue `fallback`."""
    aws.urls["fallback"] = aws.sqs.create_queue(QueueName="fallback")["QueueUrl"]

    def begin(*outcomes: Outcome | Exception, when_day_used_up: bool = False, **changes: Any) -> Post:
        other = OtherProvider(
            name="other",
            queue_url=aws.urls["fallback"],
            after_tries=TRIES,
            after_seconds=SECONDS,
            when_day_used_up=when_day_used_up,
        )
        return make_post(*outcomes, other_provider=other, **changes)

    return begin


def moved(aws: Aws) -> list[str]:
    """Return the ids of the messages in the fallback's queue."""
    return [each["id"] for each in aws.bodies("fallback")]


@pytest.mark.parametrize("refusal", [THROTTLED, PAUSED])
def test_a_message_moves_to_the_other_provider_if_its_own_provider_refuses_its_last_try(
    first: Begin, aws: Aws, counted: Counted, refusal: Outcome
) -> None:
    worker = first(refusal)
    for receives in range(1, TRIES):
        assert list(worker.handle(item(), receives=receives)) == ["r-0"]
    assert not moved(aws)
    assert worker.handle(item(), receives=TRIES) == {}
    assert moved(aws) == ["m-1"]
    assert counted()["ToOtherProvider"] == 1
    row = aws.item()
    assert row["trouble"] == {"code": "other_provider", "message": refusal.reason}  # type: ignore[union-attr]
    assert not {"startedAt", "unsettled_tries"} & row.keys()


def test_a_retry_delay_ends_when_the_message_may_move_to_the_other_provider(
    first: Begin, aws: Aws, clock: FakeClock
) -> None:
    worker = first(Retry("asks for an hour", 3_600))
    clock.advance(20)
    assert worker.handle(item()) == {"r-0": SECONDS - 20}
    clock.advance(SECONDS - 20)
    assert worker.handle(item(), receives=2) == {}
    assert moved(aws) == ["m-1"]


def test_a_queue_record_without_its_first_receive_time_moves_to_the_other_provider_at_its_last_try(
    first: Begin, aws: Aws, clock: FakeClock
) -> None:
    clock.advance(10 * SECONDS)
    worker = first(THROTTLED)
    assert list(worker.handle(item(), knows_first_receive=False)) == ["r-0"]
    assert worker.handle(item(), receives=TRIES, knows_first_receive=False) == {}
    assert moved(aws) == ["m-1"]


@pytest.mark.parametrize(
    ("outcome", "status"),
    [(Rejected("no such address"), "failed"), (Sent("p-1"), "sent"), (FULL, "scheduled")],
)
def test_a_message_with_an_outcome_or_a_wait_for_the_daily_quota_does_not_move(
    first: Begin, aws: Aws, outcome: Outcome, status: str
) -> None:
    assert first(outcome).handle(item(), receives=TRIES) == {}
    assert aws.item()["status"] == status
    assert not moved(aws)


def test_a_message_with_a_try_of_unknown_outcome_does_not_move_after_a_later_refusal(
    first: Begin, aws: Aws, ledger: Ledger, clock: FakeClock
) -> None:
    crash(ledger, clock, account="fake/1")
    worker = first(THROTTLED)
    assert worker.handle(item(), receives=TRIES) == {"r-0": 16}, "the usual back-off"
    assert worker.submitted == ["m-1"]
    assert not moved(aws)


def test_a_message_moves_without_a_submit_if_the_other_provider_may_have_sent_it(
    first: Begin, aws: Aws, ledger: Ledger, clock: FakeClock
) -> None:
    crash(ledger, clock, account="other/1 for tester@example.com")
    worker = first(Sent("p-1"))
    assert worker.handle(item()) == {}
    assert (worker.submitted, moved(aws)) == ([], ["m-1"])
    assert aws.item()["unsettled_tries"] == [f"{int(NOW * 1000)} other/1 for tester@example.com"]


def test_a_redriven_message_moves_to_the_provider_of_its_earlier_tries_and_is_submitted_there(
    first: Begin, make_post: Make, aws: Aws, ledger: Ledger, clock: FakeClock
) -> None:
    """A repair finds the message, and puts it into the queue of the first provider."""
    for _ in range(4):
        crash(ledger, clock, account="other/1")
    ledger.dead_lettered(Key("m-1", "mail"))
    assert first(Sent("p-1")).handle(item()) == {}
    assert moved(aws) == ["m-1"]
    fallback = make_post(Sent("p-2"), other_provider=OtherProvider(name="fake", queue_url=aws.urls["mail"]))
    fallback.adapter.account = "other/1"
    assert fallback.handle(item()) == {}
    assert fallback.submitted == ["m-1"]


def test_the_error_of_a_held_message_names_the_provider_that_may_have_sent_it(
    first: Begin, aws: Aws, ledger: Ledger, clock: FakeClock
) -> None:
    crash(ledger, clock, account="fake/1")
    assert first(Sent("p-1"), on_unknown="hold").handle(item()) == {}
    error = aws.item()["error"]
    assert error["message"].endswith("; ask fake, and resend the message if it never arrived")


def test_a_used_up_daily_quota_moves_all_messages_at_once_if_the_setting_when_day_used_up_is_on(
    first: Begin, aws: Aws
) -> None:
    worker = first(FULL, when_day_used_up=True)
    for number in range(2):
        assert worker.handle(*(item(id=f"m-{number}-{at}") for at in range(5))) == {}
    assert worker.submitted == ["m-0-0", "m-0-1", "m-0-2", "m-1-0"]
    assert len(moved(aws)) == 10


def test_a_message_moves_to_the_other_provider_if_the_credentials_cannot_be_read(
    first: Begin, aws: Aws
) -> None:
    worker = first(Sent("p-1"))
    worker.adapter.refusal = Misconfigured("no secret")
    assert worker.handle(item(), receives=TRIES) == {}
    assert moved(aws) == ["m-1"]


def test_a_message_whose_request_cannot_be_built_does_not_move(
    first: Begin, aws: Aws, clock: FakeClock
) -> None:
    def without_key(_message: Mail) -> None:
        raise NotReady(Misconfigured("the key of opt-out links cannot be read"))

    worker = first(prepare=without_key)
    clock.advance(2 * SECONDS)
    assert worker.handle(item(), receives=TRIES) == {"r-0": 20}, "the usual wait after a wrong configuration"
    assert (worker.submitted, moved(aws)) == ([], [])


def test_a_record_that_moves_to_the_other_provider_keeps_its_body_and_its_times(
    first: Begin, aws: Aws
) -> None:
    first(THROTTLED).handle(item(order=42), receives=TRIES)
    (record,) = aws.receive("fallback")
    assert record["Body"] == '{"id": "m-1", "event_type": "mail", "to": "vincent@example.com", ' + (
        '"subject": "Hello", "text": "Hi", "order": 42}'
    )
    attributes = {name: value["StringValue"] for name, value in record["MessageAttributes"].items()}
    assert attributes == {PUT_AT: str(int(NOW)), DUE_AT: str(int(NOW))}


def test_a_record_that_cannot_be_moved_goes_back_to_its_queue_and_the_others_of_its_batch_move(
    first: Begin, aws: Aws
) -> None:
    worker = first(THROTTLED)

    def refuse_first(real: Callable[..., Any], **arguments: Any) -> Any:
        bad = [each for each in arguments["Entries"] if '"m-1"' in each["MessageBody"]]
        good = [each for each in arguments["Entries"] if each not in bad]
        reply = real(**{**arguments, "Entries": good}) if good else {"Successful": []}
        failed = [{"Id": each["Id"], "Code": "InternalError", "SenderFault": False} for each in bad]
        return {**reply, "Failed": failed}

    worker._sqs._changes["send_message_batch"] = refuse_first
    assert worker.handle(item(), item(id="m-2"), receives=TRIES) == {"r-0": 16}, "the usual back-off"
    assert moved(aws) == ["m-2"]


def test_after_several_refusals_a_sender_submits_one_message_per_batch_until_one_is_accepted(
    first: Begin, aws: Aws
) -> None:
    def batch(number: int) -> list[dict[str, Any]]:
        return [item(id=f"m-{number}-{at}") for at in range(4)]

    worker = first(*[THROTTLED] * 4, *[Sent("p-1")] * 20)
    assert len(worker.handle(*batch(1))) == 4
    assert worker.submitted == ["m-1-0", "m-1-1", "m-1-2"]
    assert len(worker.handle(*batch(2))) == 4
    assert worker.submitted[3:] == ["m-2-0"]
    assert worker.handle(*batch(3)) == {}
    assert worker.submitted[4:] == [f"m-3-{at}" for at in range(4)]
    assert not moved(aws)


def test_bulk_messages_refused_by_the_first_provider_move_to_the_other_instead_of_waiting(
    first: Begin, aws: Aws, counted: Counted
) -> None:
    worker = first(PAUSED, bulk=True)
    for number in range(4):
        batch = [item(id=f"m-{number}-{at}") for at in range(10)]
        assert len(worker.handle(*batch)) == 10
        assert worker.handle(*batch, receives=TRIES) == {}
    assert len(worker.submitted) < 20
    assert counted()["ToOtherProvider"] == 40
    assert "WaitsForProvider" not in counted()


def test_a_sender_without_a_fallback_submits_every_message_despite_repeated_refusals(make_post: Make) -> None:
    worker = make_post(THROTTLED)
    worker.handle(*(item(id=f"m-{at}") for at in range(8)))
    assert len(worker.submitted) == 8


def test_a_sender_of_the_fallback_retries_and_does_not_send_messages_back(make_post: Make, aws: Aws) -> None:
    aws.urls["first"] = aws.sqs.create_queue(QueueName="first")["QueueUrl"]
    other = OtherProvider(name="other", queue_url=aws.urls["first"])
    worker = make_post(THROTTLED, other_provider=other)
    assert list(worker.handle(item(), receives=2 * TRIES)) == ["r-0"]
    assert not aws.bodies("first")


def test_a_used_up_daily_quota_does_not_stop_a_bulk_lane_that_moves_to_the_other_provider(
    first: Begin, aws: Aws, clock: FakeClock
) -> None:
    days = [("0001-01-01", 10)]
    sender = first(FULL, when_day_used_up=True, bulk=True, budgets_table=BUDGETS, per_day=days)
    sender.handle(item(), item(id="m-2"))
    assert moved(aws) == ["m-1", "m-2"]
    assert Budget(aws.dynamodb, BUDGETS, "mail", days, clock=clock).room().recipients == 10
